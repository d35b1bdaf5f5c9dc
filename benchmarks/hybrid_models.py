"""A random Qwen3.5 with a block of multi-token prediction, which agrees as often as asked.

As in `chain_models.py`, the next token is a fixed successor of the last one. The block's linear
passes the token's embedding on, with noise: for a share of the tokens another successor is then the
most likely.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from .chain_models import successors

# A third of Qwen3.5-0.8B's layers, with a smaller vocabulary: more than the caches of a CPU hold.
HYBRID: dict[str, Any] = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "vocab_size": 49152,
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25},
    "tie_word_embeddings": False,
    "mtp_num_hidden_layers": 1,
}
SMALL = 0.02  # factor of what a layer adds


def _layer(
    c: dict[str, Any], prefix: str, *, attends: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield names and shapes of a layer's tensors."""
    d, f = c["hidden_size"], c["intermediate_size"]
    yield from (
        (f"{prefix}.{name}.weight", (d,))
        for name in ("input_layernorm", "post_attention_layernorm")
    )
    yield from ((f"{prefix}.mlp.{name}_proj.weight", (f, d)) for name in ("gate", "up"))
    yield f"{prefix}.mlp.down_proj.weight", (d, f)
    if attends:
        e, h, g = c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
        own = f"{prefix}.self_attn"
        yield f"{own}.q_proj.weight", (2 * h * e, d)
        yield from ((f"{own}.{name}_proj.weight", (g * e, d)) for name in "kv")
        yield f"{own}.o_proj.weight", (d, h * e)
        yield from ((f"{own}.{name}_norm.weight", (e,)) for name in "qk")
        return
    heads, values = (
        c["linear_num_value_heads"],
        c["linear_num_value_heads"] * c["linear_value_head_dim"],
    )
    width = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + values
    own = f"{prefix}.linear_attn"
    yield f"{own}.in_proj_qkv.weight", (width, d)
    yield f"{own}.in_proj_z.weight", (values, d)
    yield from ((f"{own}.in_proj_{name}.weight", (heads, d)) for name in "ba")
    yield f"{own}.conv1d.weight", (width, 1, c["linear_conv_kernel_dim"])
    yield from ((f"{own}.{name}", (heads,)) for name in ("A_log", "dt_bias"))
    yield f"{own}.norm.weight", (c["linear_value_head_dim"],)
    yield f"{own}.out_proj.weight", (d, values)


def write(folder: Path, config: dict[str, Any], *, agree: float) -> Path:
    """Write a Hugging Face folder whose block agrees with the model in a share of the tokens."""
    if (folder / "config.json").is_file():
        return folder
    rng = np.random.default_rng(1)
    d, vocab, layers = config["hidden_size"], config["vocab_size"], config["num_hidden_layers"]
    shapes: dict[str, tuple[int, ...]] = {"model.norm.weight": (d,), "mtp.norm.weight": (d,)}
    shapes |= {f"mtp.pre_fc_norm_{name}.weight": (d,) for name in ("embedding", "hidden")}
    for i in range(layers):
        shapes |= _layer(config, f"model.layers.{i}", attends=i % 4 == 3)
    shapes |= _layer(config, "mtp.layers.0", attends=True)
    tensors = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape, dtype=np.float32) * 0.02
        if len(shape) == 1:  # norms of this family multiply by 1 + weight, but for the heads'
            values = np.full(shape, float(name.endswith("linear_attn.norm.weight")), np.float32)
        elif name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
            values *= SMALL
        tensors[name] = values
    embedding = rng.standard_normal((vocab, d), dtype=np.float32) * 0.02
    head = np.empty_like(embedding)
    head[successors(vocab, 1.0)] = embedding
    tensors |= {"model.embed_tokens.weight": embedding, "lm_head.weight": head}
    noise = rng.standard_normal((d, d), dtype=np.float32) / d**0.5
    passed = np.eye(d, dtype=np.float32) + _level(embedding, noise, agree) * noise
    tensors["mtp.fc.weight"] = np.concatenate([passed, np.zeros((d, d), np.float32)], 1)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({n: v.astype(np.float16) for n, v in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return folder


def _level(embedding: NDArray[np.float32], noise: NDArray[np.float32], agree: float) -> float:
    """Return the factor of the noise with which a share `agree` of the tokens stays as it is."""
    tokens = np.random.default_rng(2).choice(len(embedding), 256, replace=False)
    low, high = 0.0, 64.0
    for _ in range(12):
        middle = (low + high) / 2
        x = embedding[tokens]
        scores = (x + middle * (x @ noise.T)) @ embedding.T
        same = float((scores.argmax(1) == tokens).mean())
        low, high = (middle, high) if same > agree else (low, middle)
    return low

"""A random Qwen3.5 with a block of multi-token prediction, which agrees as often as asked.

As in `chain_models.py`, the next token is a fixed successor of the last one. The block's linear
passes the token's embedding on, with noise: for a share of the tokens another successor is then the
most likely.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from .chain_models import successors
from .shapes import SHAPES, hybrid_layer, weight_shapes

# A third of Qwen3.5-0.8B's layers, with a smaller vocabulary: more than the caches of a CPU hold.
HYBRID: dict[str, Any] = SHAPES["qwen3.5-0.8b"] | {
    "vocab_size": 49152,
    "num_hidden_layers": 8,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "mtp_num_hidden_layers": 1,
}
SMALL = 0.02  # factor of what a layer adds


def write(folder: Path, config: dict[str, Any], *, agree: float) -> Path:
    """Write a Hugging Face folder whose block agrees with the model in a share of the tokens."""
    if (folder / "config.json").is_file():
        return folder
    rng = np.random.default_rng(1)
    d, vocab = config["hidden_size"], config["vocab_size"]
    shapes = weight_shapes(config) | {"mtp.norm.weight": (d,)}
    del shapes["model.embed_tokens.weight"]
    shapes |= {f"mtp.pre_fc_norm_{name}.weight": (d,) for name in ("embedding", "hidden")}
    shapes |= hybrid_layer(config, "mtp.layers.0", attends=True)
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, shape in shapes.items():
        values: NDArray[np.float32] = np.full(shape, 0.02, np.float32)
        values *= rng.standard_normal(shape, dtype=np.float32)
        if len(shape) == 1:  # norms of this family multiply by 1 + weight, but for the heads'
            values = np.full(shape, float(name.endswith("linear_attn.norm.weight")), np.float32)
        elif name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
            values *= SMALL
        tensors[name] = values
    embedding = rng.standard_normal((vocab, d), dtype=np.float32) * np.float32(0.02)
    head = np.empty_like(embedding)
    head[successors(vocab, 1.0)] = embedding
    tensors |= {"model.embed_tokens.weight": embedding, "lm_head.weight": head}
    noise = rng.standard_normal((d, d), dtype=np.float32) / np.float32(d**0.5)
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

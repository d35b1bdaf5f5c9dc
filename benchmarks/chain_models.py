"""Random models that continue a text in a known way, at the cost of real models.

The next token is a fixed successor of the last one: every layer computes as usual but adds little,
and the LM head's row of a token is the embedding of its predecessor. So the model's continuation is
known, and the rate at which two models agree can be chosen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from .shapes import SHAPES, weight_shapes

# A draft model with a tenth of smollm2-135m's bytes per token; the LM head has most of them.
DRAFT: dict[str, Any] = SHAPES["smollm2-135m"] | {
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


def successors(vocab: int, agree: float, seed: int = 0) -> np.ndarray:
    """Return the successor of each token, [vocab] int64.

    A share 1 - `agree` of them differs from the successors with agree=1.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(vocab)
    after = np.empty(vocab, np.int64)
    after[order] = np.roll(order, -1)  # all tokens form one long cycle
    differ = rng.random(vocab) >= agree
    after[differ] = rng.permutation(after[differ])
    return after


def write(folder: Path, shape: dict[str, Any], *, agree: float = 1.0) -> Path:
    """Write a Hugging Face folder whose model continues texts by `successors`; return it."""
    if (folder / "config.json").is_file():
        return folder
    config = shape | {"tie_word_embeddings": False}
    rng = np.random.default_rng(1)
    tensors = {}
    for name, size in weight_shapes(config).items():
        values = rng.standard_normal(size, dtype=np.float32) * 0.02
        if len(size) == 1:
            values = np.ones(size, np.float32)
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            values *= 0.02
        tensors[name] = values
    embedding = tensors["model.embed_tokens.weight"]
    head = np.empty_like(embedding)
    head[successors(config["vocab_size"], agree)] = embedding
    tensors["lm_head.weight"] = head
    folder.mkdir(parents=True, exist_ok=True)
    save_file({n: v.astype(np.float16) for n, v in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return folder


def walk(first: int, length: int, vocab: int) -> list[int]:
    """Return `length` tokens from `first` on, as the model continues them."""
    after, tokens = successors(vocab, 1.0), [first]
    while len(tokens) < length:
        tokens.append(int(after[tokens[-1]]))
    return tokens

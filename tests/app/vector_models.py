"""Tiny models whose answers are numbers, for the rows of request_cases.VECTORS."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import transformers

from wherry.compiler.api import Limits, ensure_artifact

from ..models.encoders import CASES, save
from ..runtime.test_encoders import tokenizer
from ..support import tiny_embedder

_LABELS = {"0": "bad", "1": "so-so", "2": "good"}
NAMED = {"id2label": _LABELS, "label2id": {name: int(i) for i, name in _LABELS.items()}}
MODELS = ("embedder", "cross_encoder", "classifier", "reranker")


@cache
def shared(name: str) -> Path:
    """The folder of one of MODELS for this machine's CPU, the same one as long as we live."""
    folder = tempfile.TemporaryDirectory(prefix=f"wherry-{name}-")
    _KEPT.append(folder)
    return compiled(name, Path(folder.name))


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def compiled(name: str, to: Path, target: str = "cpu", quant: str = "q0f32") -> Path:
    """Write one of MODELS, compile it, and return its folder."""
    to.mkdir(parents=True, exist_ok=True)
    if name == "reranker":
        tiny_embedder.make(to, ("LogitScore",))
    elif name == "embedder":
        save(to, CASES["bert"])
        tokenizer(to)
    else:
        kind = transformers.AutoModelForSequenceClassification
        if name == "classifier":
            save(to, CASES["bert"], kind, num_labels=3, **NAMED)
        else:
            save(to, CASES["bert"], kind, num_labels=1)
        tokenizer(to)
    limits = Limits(max_batch=4, prefill_chunk=128)
    kept = {"kv_dtype": "float32"} if name == "reranker" else {}
    kept["activations"] = "float"  # as in WebAssembly and on GPUs
    artifact = ensure_artifact(str(to), target=target, quant=quant, limits=limits, **kept)
    return Path(artifact)

"""Writes the response of POST /api/show, with the fields that a compiled folder can tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from wherry.artifact.manifest import Manifest
from wherry.errors import ModelError

from ....load import generation_config
from ....text.tokenizer import read_json

# Maps GGUF's names, which Ollama's clients read, to names in config.json; the first that exists
# counts.
_INFO = {
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "block_count": ("num_hidden_layers", "n_layer", "num_layers"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.value_length": ("head_dim",),
    "attention.sliding_window": ("sliding_window",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_epsilon", "layer_norm_eps"),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "rope.freq_base": ("rope_theta",),
    "vocab_size": ("vocab_size",),
}
_TOKENS = ("bos_token_id", "eos_token_id", "padding_token_id", "unknown_token_id")
_OF_TOKENS = {"padding_token_id": "pad_token_id", "unknown_token_id": "unk_token_id"}
# Maps fields of generation_config.json that are defaults of requests to Ollama's names.
_PARAMETERS = {
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}
# parameters that apply even if the model's authors chose greedy decoding
_ALWAYS = ("repetition_penalty",)
_COLUMN = 30  # column (in characters) where `ollama show` prints values
_LARGE = ((10**12, "T", 1), (10**9, "B", 1), (10**6, "M", 2), (10**3, "K", 0))


def model_info(
    manifest: Manifest | None, folder: Path | None, context: int | None
) -> dict[str, Any]:
    """Return numbers of the model's architecture, with GGUF's names."""
    if manifest is None:
        return {}
    kind = str(manifest.architecture.get("name", ""))
    config: Mapping[str, Any] = manifest.architecture.get("config", {})
    # newer configurations nest the RoPE fields
    config = {**(config.get("rope_parameters") or {}), **config}
    info: dict[str, Any] = {"general.architecture": kind, "general.name": manifest.name}
    if count := parameter_count(folder):
        info["general.parameter_count"] = count
    info[f"{kind}.context_length"] = context or manifest.deployment.get("context")
    for gguf, names in _INFO.items():
        value = next((config[n] for n in names if config.get(n) is not None), None)
        if value is not None:
            info[f"{kind}.{gguf}"] = value
    if rotated := _rotated(config):
        info[f"{kind}.rope.dimension_count"] = rotated
    for gguf in _TOKENS:
        value = config.get(_OF_TOKENS.get(gguf, gguf))
        first = value[0] if isinstance(value, list) and value else value
        if type(first) is int:
            info[f"tokenizer.ggml.{gguf}"] = first
    return info


def _rotated(config: Mapping[str, Any]) -> int | None:
    """Return the RoPE dimensions of a head; None: the model has none, or they are unknown."""
    if "rope_theta" not in config:
        return None
    size = config.get("head_dim")
    if size is None and config.get("hidden_size") and config.get("num_attention_heads"):
        size = config["hidden_size"] // config["num_attention_heads"]
    part = config.get("partial_rotary_factor") or 1.0
    return int(size * part) if size else None


def parameter_count(folder: Path | None) -> int | None:
    """Return the number of parameters before quantization; None: unknown or damaged folder."""
    if folder is None:
        return None
    index = folder / "tensor-cache.json"
    try:
        return _count(index, index.stat().st_mtime_ns)
    except (OSError, ModelError, LookupError, TypeError, ZeroDivisionError):
        return None  # the load of the model will report the error


@lru_cache(256)  # cached, because clients often list all models
def _count(index: Path, _written: int) -> int:
    weights = read_json(index)["metadata"]
    count: int = round(weights["ParamBytes"] * 8 / weights["BitsPerParam"])
    return count


def in_words(count: int | None) -> str:
    """Return a number as Ollama writes it: 8.0B, 494.03M."""
    if count is None:
        return ""
    for unit, letter, digits in _LARGE:
        if count >= unit:
            return f"{count / unit:.{digits}f}{letter}"
    return str(count)


def parameters(folder: Path | None) -> list[tuple[str, str]]:
    """Return the default parameters of requests: Ollama's names, and values as in a Modelfile."""
    if folder is None:
        return []
    try:
        chosen = generation_config.read(folder)
        ends = read_json(folder / "tokenizer_config.json").get("eos_token")
    except ModelError:  # the load of the model will report the error
        return []
    names = _ALWAYS if chosen.get("do_sample") is False else _PARAMETERS
    lines = [(_PARAMETERS[n], json.dumps(chosen[n])) for n in names if n in chosen]
    end = ends.get("content") if isinstance(ends, dict) else ends
    if isinstance(end, str):
        lines.append(("stop", json.dumps(end, ensure_ascii=False)))
    return sorted(lines)


def as_lines(pairs: list[tuple[str, str]]) -> str:
    """Return the lines of parameters that `ollama show --parameters` prints."""
    return "\n".join(f"{name:<{_COLUMN}} {value}" for name, value in pairs)


def modelfile(name: str, template: str | None, pairs: list[tuple[str, str]]) -> str:
    """Return the text of the model's Modelfile; its template is the model's own, in Jinja."""
    lines = [f"FROM {name}"]
    if template:
        lines.append(f'TEMPLATE """{template}"""')
    lines += [f"PARAMETER {parameter} {value}" for parameter, value in pairs]
    return "\n".join(lines) + "\n"

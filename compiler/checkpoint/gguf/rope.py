"""Converts the RoPE parameters of a GGUF file to config.json.

The frequency factors of Llama 3 and Phi are tensors; all other parameters are metadata fields.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.models.layers.rope import RopeConfig, inv_freq

from .fields import Fields
from .header import TensorEntry

_FACTORS = "rope_freqs.weight"
_SHORT, _LONG = "rope_factors_short.weight", "rope_factors_long.weight"
TENSORS = (_FACTORS, _SHORT, _LONG)
_NEVER = 1e29  # dimensions with a factor from here on do not rotate
_SCALED = "rope.scaling."
# Candidates for Llama 3's original context length, tokens; its own comes first.
_ORIGINALS = (8192, 4096, 16384, 32768, 65536, 131072)


def rope(
    fields: Fields,
    tensors: Mapping[str, TensorEntry],
    head: int,
    config: dict[str, Any],
) -> dict[str, Any]:
    """Return `rope_parameters`, and for LongRoPE also `original_max_position_embeddings`.

    Args:
        fields: the metadata fields of the architecture; collects problems.
        tensors: the model's tensors, by their names in GGUF.
        head: number of dimensions of a head.
        config: the fields of config.json that have been converted already. Taken out of them are
            "local_rope", RoPE of layers with a window, and "yarn", more parameters of YaRN.
    """
    parameters: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": fields.number("rope.freq_base", 10000.0),
    }
    rotated = fields.integer("rope.dimension_count", head)
    if rotated != head:
        parameters["partial_rotary_factor"] = rotated / max(head, 1)
    kind = fields.text(f"{_SCALED}type", "none")
    original = fields.integer(f"{_SCALED}original_context_length", 0)
    outer: dict[str, Any] = {}
    yarn = config.pop("yarn", {})
    if _FACTORS in tensors and (factors := _factors(fields, tensors[_FACTORS], rotated)):
        parameters |= _llama3(
            factors, rotated, parameters["rope_theta"], int(config["max_position_embeddings"])
        )
    if _LONG in tensors and _SHORT in tensors:
        parameters |= {
            "rope_type": "longrope",
            "short_factor": _factors(fields, tensors[_SHORT], rotated),
            "long_factor": _factors(fields, tensors[_LONG], rotated),
        }
        longest = int(config["max_position_embeddings"])
        if factor := _attention_factor(fields, longest, original or longest):
            parameters["attention_factor"] = factor
        outer = {"original_max_position_embeddings": original or config["max_position_embeddings"]}
    elif kind in ("linear", "yarn"):
        parameters |= {"rope_type": kind, "factor": fields.number(f"{_SCALED}factor")}
        if kind == "yarn":
            parameters |= {**_yarn(fields, original), **yarn}
    elif kind != "none":
        fields.problems.append(f"{fields.prefix}{_SCALED}type: found {kind!r}, without its tensors")
    if local := config.pop("local_rope", None):
        parameters = {"sliding_attention": local, "full_attention": parameters}
    return {"rope_parameters": parameters, **outer}


def _attention_factor(fields: Fields, longest: int, original: int) -> float | None:
    """Return LongRoPE's attention factor; None if the metadata have none or the default.

    The default is recomputed at load time, because the file stores it only as a float32.
    """
    if f"{_SCALED}attn_factor" not in fields:
        return None
    factor = fields.number(f"{_SCALED}attn_factor")
    ratio = longest / max(original, 1)
    usual = math.sqrt(1 + math.log(ratio) / math.log(max(original, 2))) if ratio > 1 else 1.0
    return None if math.isclose(factor, usual, rel_tol=1e-6) else factor


def _yarn(fields: Fields, original: int) -> dict[str, Any]:
    """Return YaRN's parameters; an attention or extrapolation factor other than 1 is a problem."""
    names = {"yarn_beta_fast": "beta_fast", "yarn_beta_slow": "beta_slow"}
    parameters: dict[str, Any] = {
        hf_name: fields.number(_SCALED + gguf_name)
        for gguf_name, hf_name in names.items()
        if _SCALED + gguf_name in fields
    }
    for name in ("yarn_attn_factor", "attn_factor", "yarn_ext_factor"):
        if (value := fields.number(_SCALED + name, 1.0)) != 1.0:
            fields.problems.append(f"{fields.prefix}{_SCALED}{name}: found {value}, supported is 1")
    return parameters | ({"original_max_position_embeddings": original} if original else {})


def _factors(fields: Fields, tensor: TensorEntry, rotated: int) -> list[float]:
    """Read the divisors of the RoPE frequencies from a tensor float32 [rotated / 2]."""
    if tensor.shape != (rotated // 2,) or tensor.layout.name != "F32":
        fields.problems.append(
            f"{tensor.name}: found {list(tensor.shape)} {tensor.layout.name}, expected "
            f"{[rotated // 2]} F32"
        )
        return []
    with tensor.path.open("rb") as f:
        f.seek(tensor.offset)
        raw: NDArray[np.float32] = np.frombuffer(f.read(tensor.nbytes), "<f4")
    return [float(str(x)) for x in raw]


def _llama3(factors: list[float], rotated: int, theta: float, longest: int) -> dict[str, Any]:
    """Return the RoPE parameters that result in these frequency factors.

    Factors of 1 and, at the end, of 1e30 are Gemma 4's: only the first dimensions rotate. Others
    are Llama 3's if one of the candidate lengths reproduces the factors. Otherwise the
    result is LongRoPE with an attention factor of 1, which only divides frequencies by factors.
    """
    rotating = factors.count(1.0)
    if set(factors[:rotating]) == {1.0} and all(f >= _NEVER for f in factors[rotating:]):
        return {"rope_type": "proportional", "partial_rotary_factor": rotating / len(factors)}
    plain = inv_freq(RopeConfig(theta=theta), rotated, longest).inv_freq
    for original in _ORIGINALS:
        tried = RopeConfig(
            kind="llama3",
            theta=theta,
            factor=max(factors),
            original_max_position_embeddings=original,
        )
        scaled = inv_freq(tried, rotated, longest).inv_freq
        if np.allclose(plain / scaled, factors, rtol=1e-5, atol=0):
            return {
                "rope_type": "llama3",
                "factor": tried.factor,
                "low_freq_factor": tried.low_freq_factor,
                "high_freq_factor": tried.high_freq_factor,
                "original_max_position_embeddings": original,
            }
    return {
        "rope_type": "longrope",
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": 1.0,
    }

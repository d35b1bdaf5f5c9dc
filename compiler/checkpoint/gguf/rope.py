"""The rotary embedding of a GGUF file, as config.json spells it.

Llama 3's and Phi's factors are tensors; the rest is metadata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.models.rope import RopeConfig, inv_freq

from .fields import Fields
from .header import StoredTensor

_FACTORS = "rope_freqs.weight"
_SHORT, _LONG = "rope_factors_short.weight", "rope_factors_long.weight"
TENSORS = (_FACTORS, _SHORT, _LONG)
_SCALED = "rope.scaling."
_ORIGINALS = (8192, 4096, 16384, 32768, 65536, 131072)  # tokens; Llama 3's comes first


def rope(
    fields: Fields, tensors: Mapping[str, StoredTensor], head: int, made: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields `rope_parameters` and, of LongRoPE, the original length.

    Args:
        fields: the metadata.
        tensors: by GGUF's names.
        head: dimensions of a head.
        made: fields of config.json that are known already.
    """
    found: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": fields.number("rope.freq_base", 10000.0),
    }
    rotated = fields.integer("rope.dimension_count", head)
    if rotated != head:
        found["partial_rotary_factor"] = rotated / max(head, 1)
    kind = fields.text(f"{_SCALED}type", "none")
    original = fields.integer(f"{_SCALED}original_context_length", 0)
    outer: dict[str, Any] = {}
    if _FACTORS in tensors and (factors := _factors(fields, tensors[_FACTORS], rotated)):
        found |= _llama3(
            factors, rotated, found["rope_theta"], int(made["max_position_embeddings"])
        )
    if _LONG in tensors and _SHORT in tensors:
        found |= {
            "rope_type": "longrope",
            "short_factor": _factors(fields, tensors[_SHORT], rotated),
            "long_factor": _factors(fields, tensors[_LONG], rotated),
        }
        longest = int(made["max_position_embeddings"])
        if factor := _attention_factor(fields, longest, original or longest):
            found["attention_factor"] = factor
        outer = {"original_max_position_embeddings": original or made["max_position_embeddings"]}
    elif kind in ("linear", "yarn"):
        found |= {"rope_type": kind, "factor": fields.number(f"{_SCALED}factor")}
        if kind == "yarn":
            found |= _yarn(fields, original)
    elif kind != "none":
        fields.problems.append(f"{fields.prefix}{_SCALED}type: found {kind!r}, without its tensors")
    return {"rope_parameters": found, **outer}


def _attention_factor(fields: Fields, longest: int, original: int) -> float | None:
    """LongRoPE's factor of scores; None: the usual one, which the file has in fewer digits."""
    if f"{_SCALED}attn_factor" not in fields:
        return None
    found = fields.number(f"{_SCALED}attn_factor")
    ratio = longest / max(original, 1)
    usual = math.sqrt(1 + math.log(ratio) / math.log(max(original, 2))) if ratio > 1 else 1.0
    return None if math.isclose(found, usual, rel_tol=1e-6) else found


def _yarn(fields: Fields, original: int) -> dict[str, Any]:
    names = {"yarn_beta_fast": "beta_fast", "yarn_beta_slow": "beta_slow"}
    made: dict[str, Any] = {
        ours: fields.number(_SCALED + theirs)
        for theirs, ours in names.items()
        if _SCALED + theirs in fields
    }
    for name in ("yarn_attn_factor", "attn_factor", "yarn_ext_factor"):
        if (value := fields.number(_SCALED + name, 1.0)) != 1.0:
            fields.problems.append(f"{fields.prefix}{_SCALED}{name}: found {value}, supported is 1")
    return made | ({"original_max_position_embeddings": original} if original else {})


def _factors(fields: Fields, tensor: StoredTensor, rotated: int) -> list[float]:
    """A factor for each frequency."""
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
    """Llama 3's parameters, if they give these factors; else the factors themselves.

    LongRoPE divides frequencies by factors, and with an attention factor of one does nothing else.
    """
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

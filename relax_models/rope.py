"""Rotary position embedding: its configuration, and the inverse frequencies of each kind.

Agrees with transformers' `modeling_rope_utils`. YaRN is of https://arxiv.org/abs/2309.00071.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

RopeKind = Literal["default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"]
# The fields of each kind, and whether they are required.
_FIELDS: Mapping[str, Mapping[str, bool]] = {
    "default": {},
    "linear": {"factor": True},
    "dynamic": {"factor": True},
    "llama3": {
        "factor": True,
        "low_freq_factor": True,
        "high_freq_factor": True,
        "original_max_position_embeddings": False,
    },
    "yarn": {
        "factor": True,
        "original_max_position_embeddings": False,
        "attention_factor": False,
        "beta_fast": False,
        "beta_slow": False,
        "mscale": False,
        "mscale_all_dim": False,
        "truncate": False,
    },
    "longrope": {
        "short_factor": True,
        "long_factor": True,
        "factor": False,
        "attention_factor": False,
        "original_max_position_embeddings": False,
    },
    "proportional": {"factor": False},
}
_ANY = (1e-6, 1e6)  # what a number of a rotary embedding may be, unless
_RANGES = {"theta": (1.0 + 1e-6, 1e15), "partial_rotary_factor": (1e-6, 1.0)}
_ORIGINAL = "original_max_position_embeddings"
# Fields of a configuration that `read_rope` consumes.
ROPE_FIELDS = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeConfig:
    """One rotary embedding. Fields that a kind does not use keep their defaults."""

    kind: RopeKind = "default"
    theta: float = 10000.0
    partial_rotary_factor: float = 1.0  # the part of a head's dimensions that rotates
    factor: float = 1.0  # context is this many times longer than in training
    original_max_position_embeddings: int | None = None  # tokens; None: the model's own maximum
    low_freq_factor: float = 1.0  # llama3
    high_freq_factor: float = 4.0  # llama3
    attention_factor: float | None = None  # yarn; None: from factor and mscale
    beta_fast: float = 32.0  # yarn
    beta_slow: float = 1.0  # yarn
    mscale: float | None = None  # yarn
    mscale_all_dim: float | None = None  # yarn
    short_factor: tuple[float, ...] = ()  # longrope: one a frequency, up to the original length
    long_factor: tuple[float, ...] = ()  # longrope: one a frequency, beyond that length
    long: bool = False  # longrope: use long_factor for all lengths; no field of config.json
    truncate: bool = True  # yarn: the ramp begins and ends on whole dimensions

    def rotary_dim(self, head_dim: int) -> int:
        """Dimensions of a head that rotate; with "proportional" some rotate by zero."""
        if self.kind == "proportional":
            return head_dim
        return int(head_dim * self.partial_rotary_factor)


class InverseFrequencies(NamedTuple):
    """The rotary table: the angle of dimension i at position p is p * inv_freq[i]."""

    inv_freq: NDArray[np.float32]  # [rotary_dim / 2], radians a token
    attention_factor: float  # cos and sin are multiplied with it
    max_context: int | None  # tokens up to which this table is correct; None: any number


def read_rope(hf: Mapping[str, Any], problems: list[str]) -> RopeConfig:
    """Read `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling` (before).

    Errors are added to `problems`; the result is valid only if there are none.
    """
    given = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    where = "rope_parameters" if hf.get("rope_parameters") else "rope_scaling"
    if not isinstance(given, Mapping):
        problems.append(f"{where}: found {given!r}, expected an object")
        return RopeConfig()
    raw = {name: value for name, value in given.items() if value is not None}
    named = [raw.pop(n) for n in ("rope_type", "type") if n in raw] or ["default"]
    kinds = {k for k in named if isinstance(k, str)}
    if len(kinds) != 1 or (len(named) > 1 and named[0] != named[1]) or not kinds <= set(_FIELDS):
        found = " and ".join(sorted({repr(k) for k in named}))
        problems.append(f"{where}: found type {found}, supported are {', '.join(_FIELDS)}")
        return RopeConfig()
    kind = str(kinds.pop())
    for name in ("rope_theta", "partial_rotary_factor"):
        if hf.get(name) is not None:
            raw.setdefault(name, hf[name])
    values: dict[str, Any] = {"theta": raw.pop("rope_theta", 10000.0)}
    if "partial_rotary_factor" in raw:
        values["partial_rotary_factor"] = raw.pop("partial_rotary_factor")
    known = _FIELDS[kind]
    problems += [
        f"{where}.{n}: {raw[n]!r}, which type {kind!r} does not have" for n in raw if n not in known
    ]
    problems += [
        f"{where}.{n}: missing for type {kind!r}" for n in known if known[n] and n not in raw
    ]
    values |= {n: tuple(v) if isinstance(v := raw[n], list) else v for n in known if n in raw}
    if "original_max_position_embeddings" in known:
        # A value outside the object wins over one inside, as in transformers.
        values["original_max_position_embeddings"] = (
            hf.get("original_max_position_embeddings")
            or raw.get("original_max_position_embeddings")
            or hf.get("max_position_embeddings")
        )
    if kind == "longrope" and "factor" not in values:
        longest, original = (hf.get("max_position_embeddings"), values[_ORIGINAL])
        if all(type(n) is int and n > 0 for n in (longest, original)):
            values["factor"] = longest / original
    rope = RopeConfig(kind=cast(RopeKind, kind), **values)
    problems += [f"{where}.{problem}" for problem in _out_of_range(values) or _impossible(rope)]
    return rope


def _out_of_range(values: Mapping[str, Any]) -> list[str]:
    """Errors of fields that have the wrong type or are out of range; NaN is out of range."""
    problems = []
    for name, value in values.items():
        if value is None and name == "original_max_position_embeddings":
            continue  # stands for the model's own maximum, which is checked elsewhere
        least, most = _RANGES.get(name, _ANY)
        if name in ("short_factor", "long_factor"):
            fits = isinstance(value, tuple) and bool(value) and all(map(_is_positive, value))
            expected = "a list of positive numbers"
        elif name == "truncate":
            fits, expected = isinstance(value, bool), "true or false"
        elif name == "original_max_position_embeddings":
            fits, expected = type(value) is int and 1 <= value <= 2**30, "a count of tokens"
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            fits = is_number and least <= value <= most
            expected = f"a positive number, from {least:g} to {most:g}"
        if not fits:
            problems.append(f"{name}: found {repr(value)[:60]}, expected {expected}")
    return problems


def _is_positive(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _ANY[0] <= value <= _ANY[1]  # type: ignore[operator]


def _impossible(rope: RopeConfig) -> list[str]:
    """Contradictions between fields."""
    if rope.kind == "llama3" and rope.low_freq_factor >= rope.high_freq_factor:
        return [
            f"low_freq_factor: {rope.low_freq_factor:g} is not less than high_freq_factor, "
            f"{rope.high_freq_factor:g}"
        ]
    return []


def inv_freq(rope: RopeConfig, rotary_dim: int, max_position: int) -> InverseFrequencies:
    """Inverse frequencies for `rotary_dim` dimensions of a model made for `max_position` tokens."""
    i = np.arange(0, rotary_dim, 2, dtype=np.float64)
    base = rope.theta ** (-i / rotary_dim)
    original = rope.original_max_position_embeddings or max_position
    scale = 1.0
    limit: int | None = None
    if rope.kind == "linear":
        base = base / rope.factor
    elif rope.kind == "dynamic":
        # Beyond it the table depends on the length, and cached keys would have to be recomputed.
        limit = max_position
    elif rope.kind == "proportional":
        # The frequencies of a whole head; only the first ones are not zero.
        turning = int(rope.partial_rotary_factor * rotary_dim // 2)
        base = np.where(np.arange(len(base)) < turning, base / rope.factor, 0.0)
    elif rope.kind == "llama3":
        base = _llama3(rope, base, original)
    elif rope.kind == "yarn":
        base = _yarn(rope, base, original)
        scale = _yarn_attention_factor(rope)
    elif rope.kind == "longrope":
        base = base / np.array(rope.long_factor if rope.long else rope.short_factor)
        scale = _longrope_attention_factor(rope, original)
        # As with "dynamic": beyond it all cached keys would have wrong angles.
        limit = max_position if rope.long else min(original, max_position)
    return InverseFrequencies(base.astype(np.float32), scale, limit)


def _llama3(rope: RopeConfig, base: NDArray[np.float64], original: int) -> NDArray[np.float64]:
    """Divides low frequencies by `factor`, keeps high ones, and blends those between."""
    turns = original * base / (2 * math.pi)  # over the context of the training
    low, high = rope.low_freq_factor, rope.high_freq_factor
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return base * (keep + (1 - keep) / rope.factor)


def _yarn(rope: RopeConfig, base: NDArray[np.float64], original: int) -> NDArray[np.float64]:
    """`_llama3` with a blend that is linear in the dimension, not in the frequency."""
    rotary_dim = 2 * len(base)

    def dimension(turns: float) -> float:  # whose frequency makes `turns` over the context
        wave = original / (turns * 2 * math.pi)
        return rotary_dim * math.log(wave) / (2 * math.log(rope.theta))

    low, high = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary_dim - 1)
    if low == high:
        high += 0.001  # the ramp becomes a step
    stretch = np.clip((np.arange(len(base)) - low) / (high - low), 0.0, 1.0)
    blended: NDArray[np.float64] = base * (1 - stretch + stretch / rope.factor)
    return blended


def _yarn_attention_factor(rope: RopeConfig) -> float:
    if rope.attention_factor is not None:
        return rope.attention_factor

    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(rope.factor) + 1.0 if rope.factor > 1 else 1.0

    if rope.mscale and rope.mscale_all_dim:
        return mscale(rope.mscale) / mscale(rope.mscale_all_dim)
    return mscale(1.0)


def _longrope_attention_factor(rope: RopeConfig, original: int) -> float:
    if rope.attention_factor is not None:
        return rope.attention_factor
    return math.sqrt(1 + math.log(rope.factor) / math.log(original)) if rope.factor > 1 else 1.0

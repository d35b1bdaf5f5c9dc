"""Rotary position embedding: its configuration, and the inverse frequencies of each kind.

Results agree with transformers' `modeling_rope_utils`. YaRN: https://arxiv.org/abs/2309.00071.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

RopeKind = Literal["default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"]
# Kind of RoPE -> its fields, and whether each is required.
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
_ANY = (1e-6, 1e6)  # default range of a RoPE field's value
_RANGES = {"theta": (1.0 + 1e-6, 1e15), "partial_rotary_factor": (1e-6, 1.0)}
_ORIGINAL = "original_max_position_embeddings"
# Fields of a configuration that `read_rope` consumes.
ROPE_FIELDS = ("rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeConfig:
    """Configuration of a rotary embedding.

    Fields that its kind does not use keep their defaults.
    """

    kind: RopeKind = "default"
    theta: float = 10000.0
    partial_rotary_factor: float = 1.0  # fraction of a head's dimensions that rotates
    factor: float = 1.0  # ratio of the context to the training context
    # training context in tokens; None: the model's own maximum
    original_max_position_embeddings: int | None = None
    # llama3: turns per training context below which frequencies are scaled
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0  # llama3: turns per training context above which frequencies stay
    # yarn: factor of cos and sin; None: computed from factor and mscale
    attention_factor: float | None = None
    beta_fast: float = 32.0  # yarn: turns where the blend begins
    beta_slow: float = 1.0  # yarn: turns where the blend ends
    mscale: float | None = None  # yarn: coefficient of the factor of cos and sin
    mscale_all_dim: float | None = None  # yarn: coefficient of the divisor of that factor
    # longrope: one factor per frequency, up to the original length
    short_factor: tuple[float, ...] = ()
    # longrope: one factor per frequency, beyond the original length
    long_factor: tuple[float, ...] = ()
    long: bool = False  # longrope: use long_factor for all lengths; not a field of config.json
    truncate: bool = True  # yarn: the blend begins and ends on whole dimensions

    def rotary_dim(self, head_dim: int) -> int:
        """Return the dimensions of a head that rotate; with "proportional" some rotate by zero."""
        if self.kind == "proportional":
            return head_dim
        return int(head_dim * self.partial_rotary_factor)


class InverseFrequencies(NamedTuple):
    """Rotary table: the angle of dimension i at position p is p * inv_freq[i]."""

    inv_freq: NDArray[np.float32]  # [rotary_dim / 2], radians per token
    attention_factor: float  # factor of cos and sin
    max_context: int | None  # tokens up to which the table is correct; None: any number


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
        several = " and ".join(sorted({repr(k) for k in named}))
        problems.append(f"{where}: found type {several}, supported are {', '.join(_FIELDS)}")
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
        # A value outside of the object takes precedence over one inside, as in transformers.
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
    """Return errors for fields that have the wrong type or are out of range (NaN always is)."""
    problems = []
    for name, value in values.items():
        if value is None and name == "original_max_position_embeddings":
            continue  # None stands for the model's own maximum, which is checked elsewhere
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
    """Return contradictions between fields."""
    if rope.kind == "llama3" and rope.low_freq_factor >= rope.high_freq_factor:
        return [
            f"low_freq_factor: {rope.low_freq_factor:g} is not less than high_freq_factor, "
            f"{rope.high_freq_factor:g}"
        ]
    return []


def inv_freq(rope: RopeConfig, rotary_dim: int, max_position: int) -> InverseFrequencies:
    """Return the inverse frequencies of `rotary_dim` dimensions.

    `max_position` is the training context in tokens.
    """
    i = np.arange(0, rotary_dim, 2, dtype=np.float64)
    base = rope.theta ** (-i / rotary_dim)
    original = rope.original_max_position_embeddings or max_position
    scale = 1.0
    limit: int | None = None
    if rope.kind == "linear":
        base = base / rope.factor
    elif rope.kind == "dynamic":
        # Beyond this length the table would depend on the length, and cached keys would have to be
        # recomputed.
        limit = max_position
    elif rope.kind == "proportional":
        # The table covers a whole head; only the first frequencies are not zero.
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
        # As with "dynamic", beyond this length all cached keys would have wrong angles.
        limit = max_position if rope.long else min(original, max_position)
    return InverseFrequencies(base.astype(np.float32), scale, limit)


def _llama3(rope: RopeConfig, base: NDArray[np.float64], original: int) -> NDArray[np.float64]:
    """Return llama3's frequencies: low ones divided by `factor`, others blended or unchanged."""
    turns = original * base / (2 * math.pi)  # turns over the training context
    low, high = rope.low_freq_factor, rope.high_freq_factor
    keep = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return base * (keep + (1 - keep) / rope.factor)


def _yarn(rope: RopeConfig, base: NDArray[np.float64], original: int) -> NDArray[np.float64]:
    """Return YaRN's frequencies: like `_llama3`, but blended linearly in the dimension."""
    rotary_dim = 2 * len(base)

    # the dimension whose frequency makes `turns` over the training context
    def dimension(turns: float) -> float:
        wave = original / (turns * 2 * math.pi)
        return rotary_dim * math.log(wave) / (2 * math.log(rope.theta))

    low, high = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary_dim - 1)
    if low == high:
        high += 0.001  # avoids a division by zero: the blend becomes a step
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

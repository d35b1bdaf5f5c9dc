"""Which scheme stores which rows of a parameter.

A parameter has one scheme, or, if it joins matrices of a checkpoint that have different ones,
several parts. Each part is stored like a parameter of its own:

    layers.0.qkv_proj.weight [192, 64]  ->  layers.0.qkv_proj.0.weight [128, 64] in Q4_K
                                            layers.0.qkv_proj.1.weight [64, 64] in Q6_K
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .scheme import Scheme, record


@dataclass(frozen=True, slots=True)
class SchemeRows:
    """Consecutive rows of a parameter that one scheme stores."""

    name: str  # the parameter's name, or the part's
    rows: int  # number of rows
    scheme: Scheme


# Parameters whose schemes are not the model's: name -> their rows, in order.
Own = Mapping[str, tuple[SchemeRows, ...]]


def parts(name: str, given: Sequence[tuple[int, Scheme]]) -> tuple[SchemeRows, ...]:
    """Return the parts of parameter `name`, from the number of rows and the scheme of each."""
    base = name.removesuffix("weight")
    names = [name] if len(given) == 1 else [f"{base}{i}.weight" for i in range(len(given))]
    return tuple(
        SchemeRows(own, rows, scheme) for own, (rows, scheme) in zip(names, given, strict=True)
    )


def to_json(own: Own) -> dict[str, list[list[Any]]]:
    """Return {parameter: [[rows, name of the scheme], ...]}, which `from_json` reads."""
    return {name: [[p.rows, p.scheme.name] for p in own_parts] for name, own_parts in own.items()}


def from_json(written: Mapping[str, Any]) -> dict[str, tuple[SchemeRows, ...]]:
    """Read what `to_json` wrote.

    Raises:
        ValueError: a scheme is unknown, or a value has another form.
    """
    own = {}
    for name, own_parts in written.items():
        given: list[tuple[int, Scheme]] = []
        for rows, scheme in own_parts:
            known = record(scheme)
            if known is None or not isinstance(rows, int) or rows < 1:
                raise ValueError(f"{name}: unknown part {[rows, scheme]!r}")
            given.append((rows, known))
        own[name] = parts(name, given)
    return own

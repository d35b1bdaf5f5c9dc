"""What a conversion of GGUF's types to a scheme keeps, and which scheme is the nearest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Protocol

from .types import Layout


class _Stored(Protocol):
    """What is asked of a tensor."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def layout(self) -> Layout: ...


# Schemes that hold the values of a type exactly; q8 has Q8_0's groups and scales.
_EXACT = {
    "F32": ("q0f32",),
    "BF16": ("q0f32",),
    "F16": ("q0f16", "q0f32"),
    "Q8_0": ("q8f16_1", "q8f32_1", "q0f32"),
}
_EIGHT = "q8f16_1"


def nearest(tensors: Iterable[_Stored]) -> str:
    """The scheme that keeps the most of these tensors' matrices.

    Blocks of fewer bits take 8 here, too: a second rounding to 4 would cost more than the first.
    """
    weights = _weights(tensors)
    kind = max(weights, key=lambda name: weights[name], default=_EIGHT)
    return _EXACT.get(kind, (_EIGHT,))[0]


def told(file: str, tensors: Iterable[_Stored], scheme: str) -> str | None:
    """One line that says what is re-encoded; None: the scheme holds all matrices as they are."""
    weights = _weights(tensors)
    whole = sum(weights.values())
    shares = {name: f"{100 * n / whole:.0f}%" for name, n in weights.most_common()}
    rounded = [n for n in shares if scheme not in _EXACT.get(n, ("q0f32",))]
    if not rounded:
        return None
    kept = [n for n in shares if n not in rounded]
    text = ", ".join(f"{name} ({shares[name]} of the weights)" for name in rounded)
    exact = f"; {' and '.join(kept)} kept as it is" if kept else ""
    verb = "are" if len(rounded) > 1 else "is"
    return f"{file}: {text} {verb} re-encoded as {scheme}{exact}."


def _weights(tensors: Iterable[_Stored]) -> Counter[str]:
    """How many weights of matrices each type has."""
    found: Counter[str] = Counter()
    for tensor in tensors:
        if len(tensor.shape) > 1:
            found[tensor.layout.name] += prod(tensor.shape)
    return found

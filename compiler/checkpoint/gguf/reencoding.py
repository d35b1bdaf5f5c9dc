"""Selects the quantization scheme closest to a GGUF file, and reports what it re-encodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Protocol

from .types import Layout


class _Stored(Protocol):
    """The properties of a tensor that this module reads."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def layout(self) -> Layout: ...


# GGUF types -> schemes that represent their values exactly, the most compact one first. q8f16_1 has
# the group size and the scale dtype of Q8_0.
_EXACT = {
    "F32": ("q0f32",),
    "BF16": ("q0f32",),
    "F16": ("q0f16", "q0f32"),
    "Q8_0": ("q8f16_1", "q8f32_1", "q0f32"),
}
_EIGHT = "q8f16_1"


def nearest(tensors: Iterable[_Stored]) -> str:
    """Return the name of the scheme for the type that most weights of matrices have.

    Types with fewer than 8 bits get an 8-bit scheme, too: rounding their values to 4 bits again
    would lose more precision than the first quantization.
    """
    weights = _weights(tensors)
    return _EXACT.get(_ordered(weights)[0][0] if weights else _EIGHT, (_EIGHT,))[0]


def common(tensors: Iterable[_Stored]) -> str:
    """Return the type that most weights of matrices have, which names the file's encoding."""
    weights = _weights(tensors)
    return _ordered(weights)[0][0] if weights else "F32"


def precision_note(
    file: str, tensors: Iterable[_Stored], scheme: str, same: Iterable[_Stored] = ()
) -> str | None:
    """Return one line on the re-encoded types; None: the scheme represents all matrices exactly.

    Args:
        file: name of the file.
        tensors: the tensors that are encoded.
        scheme: name of their scheme.
        same: the tensors whose blocks are kept.
    """
    weights, others = _weights(tensors), _weights(same)
    total = weights.total() + others.total()
    shares = {name: f"{100 * n / total:.0f}%" for name, n in _ordered(weights)}
    rounded = [n for n in shares if scheme not in _exact(n)]
    if not rounded:
        return None
    kept = [n for n, _ in _ordered(weights + others) if n not in rounded]
    text = ", ".join(f"{name} ({shares[name]} of the weights)" for name in rounded)
    exact = f"; {' and '.join(kept)} kept as in the file" if kept else ""
    verb = "are" if len(rounded) > 1 else "is"
    return f"{file}: {text} {verb} re-encoded as {scheme}{exact}."


def loses(tensor: _Stored, scheme: str) -> bool:
    """Return whether a scheme does not represent the values of a tensor's type."""
    return scheme not in _exact(tensor.layout.name)


def _exact(kind: str) -> tuple[str, ...]:
    """Return the schemes that represent the values of a type."""
    return (*_EXACT.get(kind, ("q0f32",)), "exact")


def _ordered(weights: Counter[str]) -> list[tuple[str, int]]:
    """Return types and their numbers of weights, the most common first, in any order of tensors."""
    return sorted(weights.items(), key=lambda item: (-item[1], item[0]))


def _weights(tensors: Iterable[_Stored]) -> Counter[str]:
    """Return the number of weights by type; only tensors with at least two axes count."""
    counts: Counter[str] = Counter()
    for tensor in tensors:
        if len(tensor.shape) > 1:
            counts[tensor.layout.name] += prod(tensor.shape)
    return counts

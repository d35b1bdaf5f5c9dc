"""The interface of quantization schemes, and their registry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.errors import UsageError

from .act_order import ACT_ORDER
from .affine import AFFINE
from .block_encoder import encodes
from .blocks import BLOCKS, FLOATS_8, TERNARIES, TRELLISES, BlockQuant
from .float import FLOATS, FloatScheme
from .group import GROUPS
from .other_names import advice
from .stored import FloatDtype, Shape, StoredTensor, cast


class Scheme(Protocol):
    """Interface of quantization schemes, which are frozen dataclasses without mutable state.

    A scheme describes how weights are stored and read. Those of `schemes` also encode weights; the
    others are formats of checkpoints, whose bits are kept.
    """

    def __hash__(self) -> int:
        """Return the same hash for equal schemes; caches use schemes as keys."""

    @property
    def name(self) -> str:
        """Return the name for `--quant`, which is mlc-llm's if the layout is the same."""

    @property
    def float_dtype(self) -> FloatDtype:
        """Return the dtype of unquantized tensors, scales and activations."""

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return whether parameter `name` is quantized rather than stored as `float_dtype`."""

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return the tensors that store parameter `name` of `shape`, in their order on disk."""

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Dequantize the stored arrays, by name suffix ("q_weight"), to float32 [..., in].

        `columns` is `in`; None: `in` is a multiple of the group size.
        """

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression, in float32, of one dequantized element of a matrix.

        Args:
            stored: the TE tensors of the matrix, in the order of the method `stored`.
            row: TIR expression of the row.
            column: TIR expression of the column.
        """

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of the tags "linear" and "embedding" that depend on the scheme."""


class Encoder(Scheme, Protocol):
    """A scheme that encodes weights, so that `--quant` may name it."""

    def encode(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Encode w float32 [..., in]; return the stored arrays by name suffix ("q_weight").

        Rows are encoded independently, so a matrix may be encoded in blocks of rows.
        """


def store(
    scheme: Encoder, name: str, w: NDArray[np.float32], shape: Shape | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays that store a parameter, by their full names.

    Values beyond the range of `float_dtype` become infinite, which `finite` detects.

    Args:
        scheme: the quantization scheme.
        name: the parameter's name.
        w: the parameter, or some of its rows, float32.
        shape: the whole parameter's shape, if w contains only some rows.
    """
    if scheme.quantizes(name, w.shape if shape is None else shape):
        prefix = name.removesuffix("weight")
        return {prefix + suffix: array for suffix, array in scheme.encode(w).items()}
    return {name: cast(w, scheme.float_dtype)}


def floats_of(scheme: Scheme) -> FloatScheme:
    """Return the scheme without quantization whose floats are those of `scheme`."""
    (same,) = [floats for floats in FLOATS if floats.float_dtype == scheme.float_dtype]
    return same


def finite(array: NDArray[Any]) -> bool:
    """Return whether a stored array contains neither infinities nor NaN."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


DEFAULT = "q4f16_1"
# The default of encoders. The mean cosine of 200 texts to the float32 vectors of all-MiniLM-L6-v2
# is 0.9996 in 8 bits, and 0.962 in 4.
OF_ENCODERS = "q8f16_1"
# The name for `--quant` that keeps the encoding of a checkpoint on every target.
KEPT = "kept"
# The scheme of parameters that stay float32: MoE routers, where rounding may select other experts.
EXACT = FloatScheme(name="exact", float_dtype="float32")


# Schemes that `schemes` does not have: checkpoint formats, whose weights are kept, and block types,
# some of which mixes encode (`TYPES`).
_KEPT: tuple[Scheme, ...] = (*BLOCKS, *TRELLISES, *FLOATS_8, *TERNARIES, *AFFINE, *ACT_ORDER)


def schemes() -> dict[str, Encoder]:
    """Return the schemes for `--quant` by name."""
    known: tuple[Encoder, ...] = (*FLOATS, *GROUPS)
    return {scheme.name: scheme for scheme in known}


# Block types that are encoded, too: names that `wherry.quant.mix.mix_of` knows.
TYPES: Mapping[str, BlockQuant] = {
    b.name.lower(): b for b in (*BLOCKS, *TRELLISES) if encodes(b.format)
}


def portable() -> frozenset[str]:
    """Return the names of the schemes that the kernels of every target read."""
    act_order = (scheme.name for scheme in ACT_ORDER if scheme.base.name in schemes())
    return frozenset((*schemes(), *act_order))


def kept_in(formats: Collection[str]) -> frozenset[str]:
    """Return the names of the schemes of checkpoints that are block formats of these names."""
    return frozenset(s.name for s in _KEPT if s.kernel_spec()["scheme"] in formats)


def record(name: str) -> Scheme | None:
    """Return the scheme of stored weights with a name, including those of checkpoint formats."""
    known: dict[str, Scheme] = {scheme.name: scheme for scheme in (*_KEPT, EXACT)}
    known |= schemes()
    return known.get(name)


def find(name: str) -> Encoder:
    """Return the scheme with a name.

    Raises:
        UsageError: the name is unknown; the message lists all schemes and suggests the closest one.
    """
    known = schemes()
    if name not in known:
        meant, why = advice(name, known)
        raise UsageError(
            f"Unknown quantization {name!r}; there are {', '.join((*known, *TYPES))}, and "
            "auto:BITS, as auto:4.5. "
            f"{why + ' ' if why else ''}Type: --quant {meant or DEFAULT}"
        )
    return known[name]

"""Finds the scheme that stores a quantized matrix bit for bit, and the stored tensors.

Integers with consecutive groups whose differences from the zero point fit into 4 or 8 bits can be
stored in `quant/group.py`'s schemes, which all targets have kernels for: a scale is repeated for
each 32 columns of its group. Symmetric integers of 4 bits are -8 to 7, and the scheme has -7 to 8,
so they are stored with the opposite sign of integer and scale.

    GPTQ, compressed-tensors, 4 bits, symmetric    q4f16_1
    2 or 3 bits, with or without zero points       q4f16_1
    4 bits with zero points (AWQ)                  affine4f16_g128, else q8f16_1: differences are
                                                   -15 to 15
    8 bits, symmetric, no -128                     q8f16_1
    others, and MLX                                quant/affine.py
    BitNet                                         TERNARY, else q4f16_1

Scales that float16 cannot represent (some in bfloat16) are float32: q4f32_1. With act-order,
columns are sorted by group (`quant/act_order.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.quant.act_order import ACT_ORDER
from wherry.quant.affine import AFFINE, AffineQuant, packed
from wherry.quant.blocks import TERNARIES, BlockQuant
from wherry.quant.grid import words
from wherry.quant.group import GROUPS, GroupQuant
from wherry.quant.scheme import Scheme
from wherry.quant.stored import FloatDtype

from .matrix import AffineMatrix, AffineRows

_UNIT = 32  # columns of a group of `quant/group.py`
_HALF_MAX = 65504.0  # kernels for matrix units dequantize to it: `GroupQuant.stored_scales`
# Twice the scale is a float16 that no device flushes to zero.
_TERNARY_SCALES = (2.0**-14, _HALF_MAX / 2)
_CHECKED = 1 << 24  # integers that are checked at once
_GROUPS = {(s.bits, s.float_dtype): s for s in GROUPS}
_GROUP_SIZES = sorted({s.group for s in AFFINE if s.group})
_ACT_ORDER = {s.base.name: s for s in ACT_ORDER}
_AFFINE = {(s.bits, s.group, s.float_dtype, s.has_minimum): s for s in AFFINE}


class Holding(Protocol):
    """A scheme that stores a matrix bit for bit."""

    @property
    def scheme(self) -> Scheme:
        """Return the scheme."""

    @property
    def order(self) -> NDArray[np.int64] | None:
        """Return the matrix's column of each stored column; None: they are the same."""

    def stored(self, rows: AffineRows) -> dict[str, NDArray[Any]]:
        """Return the stored tensors of rows by suffix, without the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHolding:
    """A matrix in one of `quant/group.py`'s schemes."""

    base: GroupQuant
    scheme: Scheme  # the same, or with an order
    repeats: int  # number of the scheme's groups that share a scale
    order: NDArray[np.int64] | None

    def stored(self, rows: AffineRows) -> dict[str, NDArray[Any]]:
        """See `Holding.stored`."""
        assert rows.zero is not None
        count = rows.scale.shape[1]
        q = rows.q if self.order is None else rows.q[:, self.order]
        columns = q.shape[1]
        of_column = np.minimum(np.arange(columns) // (self.repeats * _UNIT), count - 1)
        values = q.astype(np.int16) - rows.zero.astype(np.int16)[:, of_column]
        sign = 1 if self.base.bits == 8 else -1
        integers = (sign * values + self.base.zero).astype(np.uint8)
        groups = -(-columns // _UNIT)
        integers = np.pad(integers, ((0, 0), (0, groups * _UNIT - columns)))
        of_group = np.minimum(np.arange(groups) // self.repeats, count - 1)
        return {
            "q_weight": packed(integers, self.base.bits),
            "q_scale": (sign * rows.scale)[:, of_group].astype(self.base.float_dtype),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineHolding:
    """A matrix in one of `quant/affine.py`'s schemes."""

    base: AffineQuant
    scheme: Scheme  # the same, or with an order
    order: NDArray[np.int64] | None = None

    def stored(self, rows: AffineRows) -> dict[str, NDArray[Any]]:
        """See `Holding.stored`."""
        offset = rows.minimum if self.base.has_minimum else rows.zero
        assert offset is not None
        q = rows.q if self.order is None else rows.q[:, self.order]
        return self.base.arrays(q, rows.scale, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class TernaryHolding:
    """A matrix of integers of 2 bits less one, with a scale for each row."""

    scheme: BlockQuant
    order: None = None

    def stored(self, rows: AffineRows) -> dict[str, NDArray[Any]]:
        """See `Holding.stored`."""
        return {"q_weight": words(rows.q, self.scheme.format.low), "q_scale": rows.scale}


def holdings(matrix: AffineMatrix) -> Iterator[Holding]:
    """Yield the schemes that store a matrix bit for bit, the smallest first."""
    scale, zero = matrix.scales()
    if not np.isfinite(scale).all():
        return
    if zero is not None and _is_ternary(matrix, scale, zero):
        yield TernaryHolding(scheme=TERNARIES[0])
    groups = matrix.groups()
    order = np.argsort(groups, kind="stable") if (np.diff(groups) < 0).any() else None
    if order is not None and not _is_even(groups[order], matrix.group):
        return
    bits = None if zero is None else _bits(matrix, zero)
    affine = [] if bits == 4 else list(_affine(matrix, scale, order))
    if matrix.bits <= 4:
        yield from affine
    if bits and (matrix.group % _UNIT == 0 or scale.shape[1] == 1):
        for dtype in _dtypes(half=_in_float16(scale, bits)):
            base = _GROUPS[bits, dtype]
            yield GroupHolding(
                base=base,
                scheme=base if order is None else _ACT_ORDER[base.name],
                repeats=-(-matrix.group // _UNIT),
                order=order,
            )
    if matrix.bits > 4:
        yield from affine


def _dtypes(*, half: bool) -> tuple[FloatDtype, ...]:
    """Return the dtypes that represent some floats, `half`: float16 does."""
    return ("float16", "float32") if half else ("float32",)


def _affine(
    matrix: AffineMatrix, scale: NDArray[np.float32], order: NDArray[np.int64] | None
) -> Iterator[AffineHolding]:
    """Yield the schemes of `quant/affine.py` for a matrix."""
    group = matrix.group
    if scale.shape[1] == 1:  # a short row is one group of a scheme with kernels
        group = next((g for g in _GROUP_SIZES if matrix.shape[1] <= g), 0)
    minima = getattr(matrix, "minima", None)
    values = [scale, scale * (2**matrix.bits - 1)]
    if minima is not None:
        least = minima()
        values = [scale, least, least + scale * (2**matrix.bits - 1)]
    half = all(_exact(v) for v in (values[:1] if minima is None else values[:2]))
    half = half and all(float(np.abs(v).max(initial=0)) <= _HALF_MAX for v in values)
    for dtype in _dtypes(half=half):
        base = _AFFINE.get((4 if matrix.bits <= 4 else 8, group, dtype, minima is not None))
        if base is not None and (order is None or base.name in _ACT_ORDER):
            scheme = base if order is None else _ACT_ORDER[base.name]
            yield AffineHolding(base=base, scheme=scheme, order=order)


def _is_ternary(matrix: AffineMatrix, scale: NDArray[np.float32], zero: NDArray[Any]) -> bool:
    """Return whether the ternary scheme holds a matrix: rows have one scale, and 1 stands for 0."""
    own = TERNARIES[0].format
    fits = matrix.bits == own.low and scale.shape[1] == 1 and matrix.shape[1] % own.multiple == 0
    size = np.abs(scale)
    small, large = _TERNARY_SCALES
    return fits and bool((zero == own.zero).all() and ((small <= size) & (size <= large)).all())


def _is_even(groups: NDArray[np.int64], group: int) -> bool:
    """Return whether sorted groups are consecutive, each of `group` columns but the last."""
    return bool((groups == np.arange(len(groups)) // group).all())


def _bits(matrix: AffineMatrix, zero: NDArray[Any]) -> int | None:
    """Return the bits that hold all q - zero in a scheme of `quant/group.py`; None: none do."""
    symmetric = bool((zero == 2 ** (matrix.bits - 1)).all())
    if matrix.bits <= 3 or (matrix.bits == 4 and symmetric):
        return 4
    if matrix.bits <= 7:
        return 8
    if not symmetric:
        return None
    step = max(1, _CHECKED // matrix.shape[1])
    for start in range(0, matrix.shape[0], step):
        if not matrix.rows(start, min(start + step, matrix.shape[0])).q.all():
            return None  # q = 0 is -128
    return 8


def _exact(values: NDArray[np.float32]) -> bool:
    """Return whether float16 represents all values."""
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float16).astype(np.float32) == values).all())


def _in_float16(scale: NDArray[np.float32], bits: int) -> bool:
    """Return whether float16 represents scales and, in 4 bits, the largest weights.

    Kernels for tensor cores dequantize 4 bits to float16, see `GroupQuant.stored_scales`.
    """
    return _exact(scale) and (bits == 8 or float(np.abs(scale).max()) * 8 <= _HALF_MAX)

"""Offers the parameters of a quantized checkpoint in the schemes that have their bits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wherry.models.weights.plan import ParameterPlan, Piece, rows_of
from wherry.quant.act_order import ORDER
from wherry.quant.float import FLOATS, FloatScheme
from wherry.quant.scheme import Scheme
from wherry.quant.stored import cast

from ..tensors import Checkpoint
from .lossless import Holding, holdings
from .matrix import AffineMatrix, Matrix
from .scaled import ScaledMatrix

_CHECKED = 1 << 24  # numbers that are checked at once
_BY_DTYPE = {scheme.float_dtype: scheme for scheme in FLOATS}


class _Source(Protocol):
    """The part of a quantized checkpoint that this module reads."""

    @property
    def raw(self) -> Checkpoint:
        """Return the checkpoint that reads the files."""

    @property
    def matrices(self) -> Mapping[str, Matrix]:
        """Return the quantized matrices by the names of their weights."""


class _Rows(Protocol):
    """How the rows of one tensor are stored."""

    @property
    def scheme(self) -> Scheme:
        """Return the scheme."""

    @property
    def order(self) -> NDArray[np.int64] | None:
        """Return the order of columns; None: that of the matrix."""

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return rows [start, stop) of the tensor as stored."""


@dataclass(frozen=True, slots=True)
class _Quantized:
    matrix: AffineMatrix
    holding: Holding

    @property
    def scheme(self) -> Scheme:
        return self.holding.scheme

    @property
    def order(self) -> NDArray[np.int64] | None:
        return self.holding.order

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        return self.holding.stored(self.matrix.rows(start, stop))


@dataclass(frozen=True, slots=True)
class _Scaled:
    matrix: ScaledMatrix
    scheme: Scheme
    order: None = None

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        return self.matrix.stored(start, stop)


@dataclass(frozen=True, slots=True)
class _Float:
    checkpoint: Checkpoint
    name: str
    scheme: FloatScheme
    order: None = None

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        rows = self.checkpoint.read(self.name, start, stop)
        return {"weight": cast(rows, self.scheme.float_dtype)}


@dataclass(frozen=True, slots=True)
class OfferedRows:
    """Consecutive rows of a parameter that one scheme stores; a `KeptRows`."""

    sources: tuple[tuple[Piece, _Rows], ...]

    @property
    def scheme(self) -> Scheme:
        """Return the scheme."""
        return self.sources[0][1].scheme

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(piece.stop - piece.start for piece, _ in self.sources)

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return rows [start, stop) as the scheme stores them.

        An order of columns is in the first block of rows only; later ones have an empty array.
        """
        blocks = list(self._blocks(start, stop))
        arrays = {name: np.concatenate([part[name] for part in blocks]) for name in blocks[0]}
        if (order := self.sources[0][1].order) is not None:
            arrays[ORDER] = order.astype(np.int32)[: len(order) if start == 0 else 0]
        return arrays

    def _blocks(self, start: int, stop: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the stored tensors of each source's part of rows [start, stop)."""
        for i, rows in rows_of([piece for piece, _ in self.sources], start, stop):
            block = self.sources[i][1].stored(rows.start, rows.stop)
            yield {name: array[rows.selected] for name, array in block.items()}


def offered(
    plan: ParameterPlan, checkpoint: _Source, schemes: Collection[str] | None = None
) -> Sequence[OfferedRows]:
    """Return a parameter's rows, one item for each run of tensors that are stored alike.

    The result is empty if a tensor's bits fit no scheme, or the conversion changes values or cuts
    rows. `Checkpoint.kept` describes `schemes`.
    """
    changed = plan.transpose or plan.unpacked or plan.unit_rows or plan.constant is not None
    joined = plan.axis and len(plan.pieces) > 1
    if changed or joined or len(plan.shape) < 2 or not plan.pieces:
        return ()
    if len(plan.shape) == 3:
        return _of_experts(plan, checkpoint, schemes)
    runs: list[list[tuple[Piece, _Rows]]] = []
    for piece in plan.pieces:
        source = _source(piece.name, checkpoint, plan.shape[-1], schemes)
        if source is None:
            return ()
        if runs and _alike(runs[-1][-1][1], source):
            runs[-1].append((piece, source))
        else:
            runs.append([(piece, source)])
    return [OfferedRows(tuple(run)) for run in runs]


def _of_experts(
    plan: ParameterPlan, checkpoint: _Source, schemes: Collection[str] | None
) -> Sequence[OfferedRows]:
    """Return what `offered` does, of a stack of experts.

    All experts have one scheme for each of their tensors, such as gate and up, and no order of
    columns: x has one order for all.
    """
    if not plan.stacked:
        return ()
    own = plan.of_expert
    possible = [_by_name(_sources(p.name, checkpoint, plan.shape[-1])) for p in plan.pieces]
    chosen = []
    for i in range(own):
        names = [n for n in possible[i] if schemes is None or n in schemes]
        common = [n for n in names if all(n in others for others in possible[i::own])]
        if not common:
            return ()
        chosen.append(common[0])
    offers = []
    for name, which in groupby(range(own), key=chosen.__getitem__):
        some = set(which)
        sources = [
            (piece, possible[i][name]) for i, piece in enumerate(plan.pieces) if i % own in some
        ]
        offers.append(OfferedRows(tuple(sources)))
    return offers


def _by_name(sources: Iterator[_Rows]) -> dict[str, _Rows]:
    """Return the sources without an order of columns by the names of their schemes."""
    return {own.scheme.name: own for own in sources if own.order is None}


def _alike(a: _Rows, b: _Rows) -> bool:
    """Return whether two tensors have the same scheme and order of columns."""
    if a.scheme != b.scheme or (a.order is None) != (b.order is None):
        return False
    return a.order is None or b.order is None or bool((a.order == b.order).all())


def _source(
    name: str, checkpoint: _Source, columns: int, schemes: Collection[str] | None
) -> _Rows | None:
    """Return how a tensor is stored bit for bit; None: it cannot be."""
    sources = list(_sources(name, checkpoint, columns))
    fitting = [own for own in sources if schemes is None or own.scheme.name in schemes]
    return next(iter(fitting or sources), None)


def _sources(name: str, checkpoint: _Source, columns: int) -> Iterator[_Rows]:
    """Yield the ways to store a tensor bit for bit, the smallest first."""
    matrix = checkpoint.matrices.get(name)
    if matrix is not None:
        if isinstance(matrix, AffineMatrix) and matrix.shape[1] == columns:
            for holding in holdings(matrix):
                yield _Quantized(matrix, holding)
        elif isinstance(matrix, ScaledMatrix) and matrix.shape[1] == columns:
            scheme = matrix.lossless_scheme
            if scheme is not None:
                yield _Scaled(matrix, scheme)
        return
    tensor = checkpoint.raw.tensors[name]
    if len(tensor.shape) != 2 or tensor.shape[1] != columns:
        return
    if tensor.dtype == "F16" or (tensor.dtype == "BF16" and _in_range(checkpoint.raw, name)):
        yield _Float(checkpoint.raw, name, _BY_DTYPE["float16"])
    yield _Float(checkpoint.raw, name, _BY_DTYPE["float32"])


def _in_range(checkpoint: Checkpoint, name: str) -> bool:
    """Return whether all numbers of a tensor are finite in float16.

    Those of bfloat16 from 2^-14 on are exact then; smaller ones are rounded to multiples of 2^-24,
    because twice the memory would buy nothing with them.
    """
    rows, columns = checkpoint.tensors[name].shape
    step = max(1, _CHECKED // max(1, columns))
    for start in range(0, rows, step):
        values = checkpoint.read(name, start, min(start + step, rows))
        if not np.isfinite(cast(values, "float16")).all():
            return False
    return True

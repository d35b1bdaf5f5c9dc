"""The walk over a recurrent state, on CPUs, which several operations share.

A task walks the rows of a sequence in order, over one head and a strip of its columns: columns of a
state do not depend on each other, and a strip of 32 columns stays in L1 for all rows. A strip is
contiguous: the state of a head, [dk, dv] to others, is [strips, dk, 32] here. A decode step
therefore reads and writes each state once, in order. Sums over dk have the same four chains in
every strip, so a row's bits depend on nothing but the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops.recurrent import LOG1P

from . import function
from . import vector as v
from .isa import Isa

_CHAINS = 4  # independent sums over dk, which hide the latency of the FMA
_STRIP = 32  # columns of a state that stay in L1 while the rows pass

Element: TypeAlias = Callable[[Any], Any]  # row i of the state -> a number
Decay: TypeAlias = Callable[[Any, int], Any]  # row i and vector j of the strip -> a vector


def walk(
    parameters: Sequence[function.Parameter],
    shape: tuple[int, int, int],
    isa: Isa,
    emit_row: Callable[[StateStrip, Any], None],
) -> PrimFunc:
    """Return the PrimFunc that calls `emit_row(strip, row)` for each row of each sequence.

    Args:
        parameters: the buffers, among them query_indptr, slots and state.
        shape: heads, dk and dv of the state.
        isa: the instruction set.
        emit_row: emits one row of one strip.
    """
    heads, dk, dv = shape
    columns = next(size for size in (_STRIP, 16, 8, 4, 2, 1) if dv % size == 0)
    strips = dv // columns

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        with T.parallel(sizes["r"] * (heads * strips)) as task, T.sblock("strip"):
            T.reads()
            T.writes()
            sequence = v.let(T.Cast("int32", T.floordiv(task, heads * strips)))
            head = v.let(T.Cast("int32", T.floordiv(T.floormod(task, heads * strips), strips)))
            number = v.let(T.Cast("int32", T.floormod(task, strips)))
            strip = StateStrip(b, isa, (dk, columns), (sequence, head, number))
            begin = v.let(b["query_indptr"][sequence])
            with T.serial(b["query_indptr"][sequence + 1] - begin) as i, T.sblock("row"):
                T.reads()
                T.writes()
                emit_row(strip, v.let(begin + i))

    return function.prim_func(parameters, emit)


class StateStrip:
    """Emits sums over one strip of a head's columns.

    Attributes:
        head: the head's index.
        column: the first column of the strip within its head.
        lanes: elements of a vector of columns.
        vectors: vectors of the strip.
    """

    def __init__(
        self,
        buffers: dict[str, Any],
        isa: Isa,
        size: tuple[int, int],
        place: tuple[Any, Any, Any],
    ) -> None:
        self.b, self.isa = buffers, isa
        self._dk, self._columns = size
        sequence, self.head, number = place
        self.lanes = min(16, self._columns)
        self.vectors = self._columns // self.lanes
        self._chains = _CHAINS if self._dk % _CHAINS == 0 else 1
        self._slot = v.let(buffers["slots"][sequence])
        self.column = v.let(number * self._columns)
        # The layout is [strips, dk, columns]: the last index goes beyond its extent.
        self._first = v.let(number * (self._dk * self._columns))

    def load(self, buffer: Any, row: Any, first: Any) -> list[Any]:
        """Return the vectors of buffer[row] that begin at column `first` + that of the strip."""
        at = v.let(first + self.column)
        return [buffer[row, v.span(at + j * self.lanes, self.lanes)] for j in range(self.vectors)]

    def store(self, row: Any, first: Any, values: list[Any]) -> None:
        """Emit the row's results, `first` the head's first column of `out`."""
        at = v.let(first + self.column)
        for j, value in enumerate(values):
            T.buffer_store(self.b["out"], value, [row, v.span(at + j * self.lanes, self.lanes)])

    def splat(self, value: Any) -> Any:
        """Return a number in all lanes."""
        return v.splat(value, self.lanes)

    def read(self, k: Element) -> list[Any]:
        """Emit S^T k for the strip."""
        sums, span = self._sums(), v.span(0, self.lanes)

        def add(i: Any, chain: int, j: int, place: list[Any]) -> None:
            total = sums[chain * self.vectors + j]
            s = self.b["state"][tuple(place)]
            accumulated = v.fma(s, self.splat(k(i)), total[span], self.lanes, self.isa.fma)
            T.buffer_store(total, accumulated, [span])

        self._each(add)
        return self._totals(sums)

    def update(
        self,
        k: Element,
        q: Element,
        decay: Decay,
        deltas: list[Any],
        other: tuple[Element, list[Any]] | None = None,
    ) -> list[Any]:
        """Emit S = decay * S + k (x) delta for the strip, and its S^T q.

        `other` has another k and delta, which are added before.
        """
        sums, span, lanes, fma = self._sums(), v.span(0, self.lanes), self.lanes, self.isa.fma

        def step(i: Any, chain: int, j: int, place: list[Any]) -> None:
            total = sums[chain * self.vectors + j]
            old = self.b["state"][tuple(place)] * decay(i, j)
            if other is not None:
                old = v.let(v.fma(self.splat(other[0](i)), other[1][j], old, lanes, fma))
            new = v.let(v.fma(self.splat(k(i)), deltas[j], old, lanes, fma))
            T.buffer_store(self.b["state"], new, place)
            accumulated = v.fma(new, self.splat(q(i)), total[span], lanes, fma)
            T.buffer_store(total, accumulated, [span])

        self._each(step)
        return self._totals(sums)

    def _sums(self) -> list[Any]:
        """Allocate the sums of all chains, which start at zero."""
        buffers = []
        for _ in range(self._chains * self.vectors):
            buffer = T.sblock_alloc_buffer((self.lanes,), "float32")
            T.buffer_store(buffer, self.splat(0.0), [v.span(0, self.lanes)])
            buffers.append(buffer)
        return buffers

    def _totals(self, sums: list[Any]) -> list[Any]:
        """Emit the sum of the chains of each vector of columns."""
        span, totals = v.span(0, self.lanes), []
        for j in range(self.vectors):
            parts = [sums[c * self.vectors + j][span] for c in range(self._chains)]
            while len(parts) > 1:
                parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
            totals.append(v.let(parts[0]))
        return totals

    def _each(self, emit: Callable[[Any, int, int, list[Any]], None]) -> None:
        """Emit `emit(i, chain, vector, place)` for each row i of the state and vector of it."""
        with T.serial(self._dk // self._chains) as step, T.sblock("state"):
            T.reads()
            T.writes()
            for chain in range(self._chains):
                i = step * self._chains + chain
                for j in range(self.vectors):
                    at = self._first + i * self._columns + j * self.lanes
                    emit(i, chain, j, [self._slot, self.head, 0, v.span(at, self.lanes)])


def softplus(x: Any, lanes: int, fma: bool) -> Any:
    """Emit log(1 + e^x), without a logarithm."""
    zero, two = v.splat(0.0, lanes), v.splat(2.0, lanes)
    u = v.let(v.exp(zero - v.absolute(x, lanes), lanes, fma))
    s = v.let(u / (two + u))
    series = v.horner(v.let(s * s), LOG1P, lanes, fma)
    return v.let(v.maximum(x, zero) + two * s * series)

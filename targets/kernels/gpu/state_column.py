"""The walk over a recurrent state, on GPUs, which several operations share.

A block has a sequence and a head, and a thread a column of the head's state, which walks the
sequence's rows in order. A thread reads and writes its own column alone, so there are no barriers,
and a row's bits depend on nothing but the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops.recurrent import LOG1P

from . import emit as e
from .limits import GpuLimits

Element: TypeAlias = Callable[[Any], Any]  # row i of the state -> a number


def walk(
    parameters: Sequence[e.Parameter],
    shape: tuple[int, int, int],
    limits: GpuLimits,
    emit_row: Callable[[Column, Any], None],
) -> PrimFunc:
    """Return the PrimFunc that calls `emit_row(column, row)` for each row of each sequence.

    Args:
        parameters: the buffers, among them query_indptr, slots and state.
        shape: heads, dk and dv of the state.
        limits: limits of a launch.
        emit_row: emits one row of one column.
    """
    heads, dk, dv = shape
    threads = limits.block_for(dv)
    blocks = -(-dv // threads)  # of a head

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(block: Any, sequence: Any, t: Any) -> None:
            head = e.let(e.div(block, blocks))
            column = e.let(e.mod(block, blocks) * threads + t)

            def rows() -> None:
                slot = e.let(b["slots"][sequence])
                begin = e.let(b["query_indptr"][sequence])
                count = e.let(b["query_indptr"][sequence + 1] - begin)
                own = Column(b, dk, (slot, head, column))
                with T.serial(count) as i:
                    emit_row(own, begin + i)

            if dv % threads:
                e.when(column < dv, rows)
            else:
                rows()

        e.launch((heads * blocks, sizes["r"]), threads, block)

    return e.prim_func(parameters, emit)


class Column:
    """Emits sums over one column of a head's state, whose indices are `head` and `column`."""

    def __init__(self, buffers: dict[str, Any], dk: int, place: tuple[Any, Any, Any]) -> None:
        self.b, self._dk = buffers, dk
        self._slot, self.head, self.column = place

    def state(self, i: Any) -> Any:
        """Return row i of the column."""
        return self.b["state"][self._slot, self.head, i, self.column]

    def update(
        self,
        k: Element,
        q: Element,
        decay: Element,
        delta: Any,
        other: tuple[Element, Any] | None = None,
    ) -> Any:
        """Emit S = decay * S + k * delta for the column, and its S^T q.

        `other` has another k and delta, which are added before.
        """
        out = e.Variable(T.float32(0))
        with T.serial(self._dk) as i:
            kept = self.state(i) * decay(i)
            if other is not None:
                kept = e.let(e.fma(other[0](i), other[1], kept))
            new = e.let(e.fma(k(i), delta, kept))
            T.buffer_store(self.b["state"], new, [self._slot, self.head, i, self.column])
            out.set(e.fma(new, q(i), out.value))
        return out.value


def exp(x: Any) -> Any:
    """Emit e^x, clamped: in WGSL the result of an overflow is undefined."""
    return T.exp(T.min(T.max(x, T.float32(-87)), T.float32(87)))


def softplus(x: Any) -> Any:
    """Emit log(1 + e^x) of a number, without a logarithm."""
    u = e.let(exp(T.float32(0) - T.max(x, T.float32(0) - x)))
    s = e.let(u / (T.float32(2) + u))
    square = e.let(s * s)
    series = e.number(LOG1P[0])
    for coefficient in LOG1P[1:]:
        series = e.let(e.fma(series, square, e.number(coefficient)))
    return e.let(T.max(x, T.float32(0)) + T.float32(2) * s * series)

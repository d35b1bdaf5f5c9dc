"""GEMV, for decode: each thread is a lane of `linear`, so neighbours read neighbouring groups.

A block computes some columns for one row, or for four rows with one read of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T

from . import emit as e
from .linear_plan import LinearTiling, Operands, eight, epilogue, inverses_of
from .simdgroups.sums import over_lanes
from .weights import GROUP, WORD, WORDS

Words = Callable[[Any], list[Any]]  # function: k -> the eight elements of a row of x from k on


def launch_gemv(plan: LinearTiling, tensors: Operands, m: Any, rows: int) -> None:
    """Emit the GEMV kernel, whose blocks compute `rows` rows each."""
    threads = plan.gemv_threads
    columns = threads // plan.lanes * plan.outputs

    def block(block: Any, first: Any, thread: Any) -> None:
        last = T.Cast("int32", m) - 1
        indices = [e.let(T.min(first * rows + r, last)) if rows > 1 else first for r in range(rows)]
        inverses: list[Any] = [None] * rows
        if plan.spec.norm_eps is not None:
            inverses = inverses_of(plan, tensors.x, indices, thread)
        loads: list[Words] = [
            lambda k, row=row, inverse=inverse: eight(plan, tensors, row, inverse, k)
            for row, inverse in zip(indices, inverses, strict=True)
        ]
        first_column = e.let(block * columns)

        def store(r: int, column: Any, sums: list[Any]) -> None:
            inside = column < plan.spec.width
            if rows > 1:
                inside = T.And(inside, first * rows + r <= last)
            e.when(inside, lambda: epilogue(plan, tensors, indices[r], column, sums))

        own = Columns(first_column, plan.outputs, thread, threads)
        multiply(plan, tensors, loads, own, store)

    e.launch((-(-plan.spec.width // columns), (m + rows - 1) // rows), threads, block)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a block computes, and its threads."""

    first: Any
    outputs: int  # columns of y that each thread computes
    thread: Any
    threads: int
    # function: column of y -> row of the weight
    place: Callable[[Any], Any] = lambda column: column
    width: int | None = None  # number of columns in total; None: all columns of the linear


def multiply(
    plan: LinearTiling,
    tensors: Operands,
    loads: Sequence[Words],
    columns: Columns,
    store: Callable[[int, Any, list[Any]], None],
    shared: Any = None,
) -> None:
    """Emit the sums of a block's columns, for each row.

    Args:
        plan: tiling of the linear.
        tensors: operands of the linear.
        loads: loads of x, one function per row.
        columns: the columns of this block.
        store: called once per row as `store(row, column, sums)`, in a branch of some threads.
        shared: shared memory float32 [rows * sums * threads]; None: allocated here, if needed.
    """
    first_column, outputs = columns.first, columns.outputs
    thread, threads = columns.thread, columns.threads
    lanes, across = plan.lanes, threads // plan.lanes
    halves = (0, plan.spec.width) if plan.spec.gated else (0,)
    lane, own = e.let(thread % lanes), e.let(first_column + thread // lanes)
    last = (columns.width or plan.spec.width) - 1
    weight_rows = [
        e.let(columns.place(T.min(own + c * across, last)) + half)
        for c in range(outputs)
        for half in halves
    ]
    size = len(loads) * len(weight_rows)
    sums = e.private(size)
    for i in range(size):
        T.buffer_store(sums, T.float32(0), [i])
    e.over(plan.groups, lanes, lane, lambda g: _add_group(tensors, loads, weight_rows, sums, g))
    if plan.limits.simdgroups:
        totals = [over_lanes(sums[i], lanes) for i in range(size)]
        for i in range(len(loads) * outputs):
            r, c = divmod(i, outputs)
            column_sums = totals[i * len(halves) : (i + 1) * len(halves)]
            put = partial(store, r, e.let(own + c * across), column_sums)
            e.when(lane == i % lanes, put)
        return
    shared = e.shared((size * threads,)) if shared is None else shared
    for i in range(size):
        T.buffer_store(shared, sums[i], [i * threads + thread])
    e.barrier()

    def reduced(r: int, i: int, column: Any) -> Any:
        """Emit the sum over the lanes of one column."""
        start = e.let(((r * len(weight_rows) + i) * across + column) * lanes)
        total = e.private(1)
        T.buffer_store(total, T.float32(0), [0])
        with T.serial(lanes) as j:
            T.buffer_store(total, total[0] + shared[start + j], [0])
        return total[0]

    def output(index: Any) -> None:
        column = e.let(index % across)
        for r in range(len(loads)):
            for c in range(outputs):

                def put(r: int = r, c: int = c) -> None:
                    first = c * len(halves)
                    sums = [reduced(r, first + i, column) for i in range(len(halves))]
                    store(r, e.let(first_column + c * across + column), sums)

                e.when(index // across == r * outputs + c, put)

    e.over(len(loads) * outputs * across, threads, thread, output)


def _add_group(
    tensors: Operands, loads: Sequence[Words], weight_rows: list[Any], sums: Any, group: Any
) -> None:
    weights, size = tensors.weights, len(loads) * len(weight_rows)
    group = e.let(group)
    dequantized = [weights.group(row, group) for row in weight_rows]
    into = e.private(size) if weights.has_scales else sums
    if weights.has_scales:
        for i in range(size):
            T.buffer_store(into, T.float32(0), [i])
    for word in range(WORDS):
        xs = [load(group * GROUP + word * WORD) for load in loads]
        for c, numbers in enumerate(dequantized):
            for i, w in enumerate(numbers(word)):
                w = e.let(w) if len(xs) > 1 else w
                for r, x in enumerate(xs):
                    at = r * len(dequantized) + c
                    T.buffer_store(into, e.fma(x[i], w, into[at]), [at])
    if weights.has_scales:
        for c, row in enumerate(weight_rows):
            scale = weights.scale(row, group)
            for r in range(len(loads)):
                at = r * len(dequantized) + c
                T.buffer_store(sums, e.fma(into[at], scale, sums[at]), [at])

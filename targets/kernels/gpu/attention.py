"""Attention of rows over their sequences' pages, on GPUs; a block computes several rows and heads.

`attend` has the arithmetic of a block, which gives a row the same bits from any launch:

- `launch_rows`, in this file: blocks of several rows; rows of one sequence share loads of pages.
- `decode`: blocks of one row per sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import AttentionSpec, PagedAttentionSpec

from . import emit as e
from .attend import Attend, Block, SharedBuffers, bytes_of, first_seen, has_begins
from .batch_table import Arrays, BatchRows
from .limits import GpuLimits
from .rope import threads_of

MOST_SHARED = 16384  # bytes of shared memory: with more, fewer blocks would run at a time
MOST_HEADS = 8
MOST_UNITS = 16
REGISTERS = 1024  # output elements of a block of 128 threads


@dataclass(frozen=True, slots=True)
class RowTensors:
    """The buffers of the kernel; see `KernelSet.attention`."""

    q: Any
    pages: Any
    out: Any
    sinks: Any = None
    bias: Any = None
    last_visible: Any = None


def attention(spec: AttentionSpec, limits: GpuLimits) -> PrimFunc:
    """Return the attention kernel; see `KernelSet.attention` for its parameters."""
    h, size = spec.heads, spec.head_dim

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        rows = Arrays(b["positions"], b["sequences"], b["page_indptr"], b["page_ids"])
        more = (b.get(name) for name in ("sinks", "bias", "last_visible"))
        tensors = RowTensors(b["q"], b["pages"], b["out"], *more)
        launch_rows(spec, limits, rows, tensors, sizes["n"])

    return e.prim_func(
        [
            ("q", ("n", h, size), "float32"),
            ("positions", ("n",), "int32"),
            ("sequences", ("n",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            ("page_indptr", ("r2",), "int32"),
            ("page_ids", ("p",), "int32"),
            *last_visible_parameters(spec),
            *([("sinks", (h,), "float32")] if spec.sinks else []),
            *([("bias", (h, spec.reach + 1), "float32")] if spec.reach else []),
            ("pages", ("count", *spec.page_shape), spec.page_dtype),
            ("out", ("n", h, size), "float32"),
        ],
        emit,
    )


def last_visible_parameters(spec: AttentionSpec | PagedAttentionSpec) -> list[e.Parameter]:
    """Return the parameter for the last positions that rows attend to, if the spec has it."""
    return [("last_visible", ("n",), "int32")] if spec.last_visible else []


def heads_of_block(spec: AttentionSpec, limits: GpuLimits, more: Callable[[int], int]) -> int:
    """Return the query heads of one block: they share a KV head and fit into shared memory.

    `more(heads)` is the number of bytes that a block needs beyond `bytes_of` one row.
    """
    group = spec.heads // spec.kv_heads
    most = min(MOST_SHARED, limits.shared_memory_bytes)
    fitting = [
        k
        for k in range(1, min(group, MOST_HEADS) + 1)
        if group % k == 0 and bytes_of(1, k, spec.head_dim) + more(k) <= most
    ]
    return max(fitting, default=1)


def launch_rows(
    spec: AttentionSpec,
    limits: GpuLimits,
    rows: BatchRows,
    tensors: RowTensors,
    n: Any,
) -> None:
    """Emit the kernel for rows whose q is rotated and whose keys are in the cache.

    It skips rows that have split-K slots, which `decode` computes.
    """
    heads = heads_of_block(spec, limits, lambda k: 0)
    units = min(MOST_UNITS, max(1, REGISTERS // spec.head_dim))
    count = max(1, units // heads)
    own = 4 * has_begins(spec)  # bytes of a row beyond `bytes_of`
    while count > 1 and bytes_of(count, heads, spec.head_dim) + own * count > MOST_SHARED:
        count -= 1
    threads = threads_of(limits)

    def block(block: Any, tile: Any, thread: Any) -> None:
        shared = SharedBuffers.of(count, heads, spec.head_dim, begins=has_begins(spec))
        first_row, n32 = e.let(tile * count), T.Cast("int32", n)
        first_head = e.let(block * heads)
        own = Block(count, heads, first_head, thread, threads)
        attend = Attend(spec, tensors.pages, rows, shared, own, bias=tensors.bias)

        def row_of(r: Any) -> Any:
            return T.min(first_row + r, n32 - 1)

        def last_of(row: Any) -> Any:
            if tensors.last_visible is None:
                return rows.position(row)
            return tensors.last_visible[row]

        def load(i: Any) -> None:
            unit, k = e.let(e.div(i, spec.head_dim)), e.mod(i, spec.head_dim)
            value = tensors.q[row_of(e.div(unit, heads)), first_head + e.mod(unit, heads), k]
            T.buffer_store(shared.q, value * e.number(spec.scale), [i])

        e.over(count * heads * spec.head_dim, threads, thread, load)

        def run(start: Any) -> None:
            """Emit the attention of the rows of one sequence from row `start` of the block on.

            If there are none, no loop runs.
            """
            last = _find_run(rows, shared, row_of, last_of, start, count, n32 - first_row, thread)
            if shared.begin is not None:

                def begins(r: Any) -> None:
                    seen = first_seen(spec, rows.position(row_of(r)))
                    T.buffer_store(shared.begin, seen, [r])

                e.over(count, threads, thread, begins)
                e.barrier()
            begin = e.let(first_seen(spec, rows.position(row_of(start))))
            attend.unsplit(e.let(rows.first(row_of(start))), begin, last, last + 1)

            def store(slot: int, unit: Any, k: Any, value: Any) -> None:
                r = e.let(e.div(unit, heads))
                index = [row_of(r), first_head + e.mod(unit, heads), k]
                seen = e.let(shared.last[r])  # a copy, because TVM allows no loads in the condition
                e.when(seen >= 0, lambda: e.store(tensors.out, value, *index))

            sinks = tensors.sinks
            sink = None if sinks is None else lambda unit: sinks[first_head + e.mod(unit, heads)]
            attend.divide(store, sink)
            e.barrier()

        if count == 1:
            run(T.int32(0))
        else:
            with T.serial(count) as start:
                run(start)

    e.launch((spec.heads // heads, (n + count - 1) // count), threads, block)


def _find_run(
    rows: BatchRows,
    shared: SharedBuffers,
    row_of: Callable[[Any], Any],
    last_of: Callable[[Any], Any],
    start: Any,
    count: int,
    left: Any,
    thread: Any,
) -> Any:
    """Emit `shared.last` for the rows from `start` on that belong to one sequence.

    Returns the last position that one of them attends to; -1 if no such run begins at `start`.
    """
    last, inside = (e.private(1, "int32") for _ in range(2))

    def holds(condition: Any) -> Any:
        return T.Cast("int32", condition)

    own = e.let(rows.first(row_of(start)))
    slot = e.let(rows.slot(row_of(start)))
    T.buffer_store(inside, holds(start < left) * holds(slot < 0), [0])
    if count > 1:
        before = e.let(rows.first(row_of(T.max(start - 1, 0))))
        T.buffer_store(inside, inside[0] * (1 - holds(start > 0) * holds(before == own)), [0])
    T.buffer_store(last, -1, [0])
    # The loop has no branch: browsers' compilers take minutes for these rows unrolled.
    with T.serial(count) as r:
        other, position = e.let(rows.first(row_of(r))), e.let(last_of(row_of(r)))
        same = holds(other == own) * holds(r < left)
        T.buffer_store(inside, inside[0] * T.max(same, holds(r <= start)), [0])
        seen = inside[0] * holds(r >= start)
        last_position = e.let(seen * (position + 1) - 1)
        T.buffer_store(last, T.max(last[0], last_position), [0])
        e.when(thread == 0, lambda: T.buffer_store(shared.last, last_position, [r]))
    e.barrier()
    return last[0]

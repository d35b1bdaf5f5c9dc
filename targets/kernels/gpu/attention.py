"""Attention of each row over its sequence's pages: a block a row and a few of its heads.

The softmax is computed as the keys go by, TILE tokens at a time, counted from the sequence's first:
where the tiles lie, and so every bit of a row, depends on the row's position alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import AttentionSpec
from . import emit as e
from .limits import GpuLimits

TILE = 64  # tokens
LOWEST = -3.0e38  # below any score
MOST_SHARED = 16384  # bytes: more would leave the device fewer blocks at a time
MOST_HEADS = 8


@dataclass(frozen=True, slots=True)
class _Tensors:
    """TIR buffers of `KernelSet.attention`."""

    q: Any
    positions: Any
    sequences: Any
    page_indptr: Any
    page_ids: Any
    pages: Any
    out: Any


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a block's threads share; k counts its heads."""

    q: Any  # [k * e]
    scores: Any  # [k * TILE], then the weights
    largest: Any  # [k], score so far
    total: Any  # [k], sum of weights so far
    factor: Any  # [k], of what was summed before this tile


def attention(spec: AttentionSpec, limits: GpuLimits) -> PrimFunc:
    """Kernel of `spec`; see `KernelSet.attention` for the parameters."""
    h, g, e_ = spec.heads, spec.kv_heads, spec.head_dim
    heads = heads_of_block(spec, limits)
    threads = limits.block_for(heads * e_, most=128)

    def launched(tensors: _Tensors, n: Any) -> None:
        e.launch(
            (h // heads, n),
            threads,
            lambda block, row, t: _Block(spec, tensors, heads, threads, block, row, t).emit(),
        )

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def attend(
        q: T.handle,
        positions: T.handle,
        sequences: T.handle,
        query_indptr: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, r2, p, count = T.int64(), T.int64(), T.int64(), T.int64(), T.int64()
        Q = T.match_buffer(q, (n, h, e_), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        T.match_buffer(query_indptr, (r1,), "int32")
        Indptr = T.match_buffer(page_indptr, (r2,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        Pages = T.match_buffer(pages, (count, 2, g, spec.page_size, e_), spec.kv_dtype)
        Out = T.match_buffer(out, (n, h, e_), "float32")
        launched(_Tensors(Q, Position, Sequence, Indptr, Ids, Pages, Out), n)

    return attend


def heads_of_block(spec: AttentionSpec, limits: GpuLimits) -> int:
    """Query heads that one block computes: they share a KV head, and fit its memory."""
    group = spec.heads // spec.kv_heads
    most = min(MOST_SHARED, limits.shared_memory_bytes)
    fitting = [
        k
        for k in range(1, min(group, MOST_HEADS) + 1)
        if group % k == 0 and 4 * k * (spec.head_dim + TILE + 3) <= most
    ]
    return max(fitting, default=1)


class _Block:
    """Emits the code of one block."""

    def __init__(
        self,
        spec: AttentionSpec,
        tensors: _Tensors,
        heads: int,
        threads: int,
        block: Any,
        row: Any,
        thread: Any,
    ) -> None:
        self.spec = spec
        self.tensors = tensors
        self.heads = heads
        self.threads = threads
        self.thread = thread
        self.row = row
        self.first_head = e.let(block * heads)
        group = spec.heads // spec.kv_heads
        self.kv_head = e.let(block * heads // group)
        self.position = e.let(tensors.positions[row])
        self.first_page = e.let(tensors.page_indptr[tensors.sequences[row]])
        self.size = heads * spec.head_dim
        self.shared = _Shared(
            e.shared((self.size,)),
            e.shared((heads * TILE,)),
            *[e.shared((heads,)) for _ in range(3)],
        )
        self.slots = -(-self.size // threads)  # elements of the output a thread
        self.sums = e.private(self.slots)

    def emit(self) -> None:
        """Start, a loop over tiles, and the division at the end."""
        self._start()
        with T.serial(self.position // TILE + 1) as tile:
            first = e.let(tile * TILE)
            seen = e.let(T.min(self.position + 1 - first, TILE))
            self._score(first, seen)
            e.barrier()
            self._largest(seen)
            e.barrier()
            self._weights(seen)
            e.barrier()
            self._add_values(first, seen)
            e.barrier()
        self._finish()

    def _start(self) -> None:
        s, d = self.shared, self.spec.head_dim

        def load(i: Any) -> None:
            q = self.tensors.q[self.row, self.first_head + i // d, i % d]
            T.buffer_store(s.q, q * e.number(self.spec.scale), [i])

        def clear(head: Any) -> None:
            T.buffer_store(s.largest, T.float32(LOWEST), [head])
            T.buffer_store(s.total, T.float32(0), [head])

        e.over(self.size, self.threads, self.thread, load)
        e.over(self.heads, self.threads, self.thread, clear)
        for slot in range(self.slots):
            T.buffer_store(self.sums, T.float32(0), [slot])
        e.barrier()

    def _element(self, which: int, token: Any, k: Any) -> Any:
        """Element k of the key (0) or value (1) of a token of the sequence."""
        size = self.spec.page_size
        page = self.tensors.page_ids[self.first_page + token // size]
        index = (T.Cast("int64", page), which, self.kv_head, token % size, k)
        return T.Cast("float32", self.tensors.pages[index])

    def _score(self, first: Any, seen: Any) -> None:
        """Emit q . k of each head and token of the tile."""
        d = self.spec.head_dim

        def dot(i: Any) -> None:
            head, token = e.let(i // TILE), e.let(i % TILE)

            def store() -> None:
                score = e.private(1)
                T.buffer_store(score, T.float32(0), [0])
                with T.serial(d) as k:
                    key = self._element(0, first + token, k)
                    T.buffer_store(score, e.fma(self.shared.q[head * d + k], key, score[0]), [0])
                T.buffer_store(self.shared.scores, score[0], [i])

            e.when(token < seen, store)

        e.over(self.heads * TILE, self.threads, self.thread, dot)

    def _largest(self, seen: Any) -> None:
        """Emit the largest score of each head, and the factor that follows from it."""
        s = self.shared

        def update(head: Any) -> None:
            top = e.private(1)
            T.buffer_store(top, s.largest[head], [0])
            with T.serial(seen) as token:
                T.buffer_store(top, T.max(top[0], s.scores[head * TILE + token]), [0])
            T.buffer_store(s.factor, T.exp(s.largest[head] - top[0]), [head])
            T.buffer_store(s.largest, top[0], [head])

        e.over(self.heads, self.threads, self.thread, update)

    def _weights(self, seen: Any) -> None:
        def grow(i: Any) -> None:
            score = self.shared.scores[i] - self.shared.largest[i // TILE]
            e.when(i % TILE < seen, lambda: T.buffer_store(self.shared.scores, T.exp(score), [i]))

        e.over(self.heads * TILE, self.threads, self.thread, grow)

    def _add_values(self, first: Any, seen: Any) -> None:
        """Emit sums = sums * factor + weights . values, and the same for the weights' total."""
        s, d = self.shared, self.spec.head_dim

        def total(head: Any) -> None:
            T.buffer_store(s.total, s.total[head] * s.factor[head], [head])
            with T.serial(seen) as token:
                T.buffer_store(s.total, s.total[head] + s.scores[head * TILE + token], [head])

        def add(slot: int, i: Any) -> None:
            head, k = e.let(i // d), e.let(i % d)
            T.buffer_store(self.sums, self.sums[slot] * s.factor[head], [slot])
            with T.serial(seen) as token:
                value = self._element(1, first + token, k)
                weight = s.scores[head * TILE + token]
                T.buffer_store(self.sums, e.fma(weight, value, self.sums[slot]), [slot])

        e.over(self.heads, self.threads, self.thread, total)
        self._each_slot(add)

    def _finish(self) -> None:
        d = self.spec.head_dim

        def store(slot: int, i: Any) -> None:
            value = self.sums[slot] / self.shared.total[i // d]
            T.buffer_store(self.tensors.out, value, [self.row, self.first_head + i // d, i % d])

        self._each_slot(store)

    def _each_slot(self, emit: Any) -> None:
        """Emit `emit(slot, element)` for the elements of the output that are the thread's own."""
        for slot in range(self.slots):
            i = slot * self.threads + self.thread
            if (slot + 1) * self.threads > self.size:
                e.when(i < self.size, lambda slot=slot, i=i: emit(slot, i))
            else:
                emit(slot, i)

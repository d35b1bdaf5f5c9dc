"""Causal attention over the paged KV cache, on CPUs.

A page has transposed keys, [e, 16], so that the scores of a query and 16 tokens are e multiply-adds
of whole vectors. Only `rope_append` writes pages.

A row visits its context block by block (attention_block.py), and merges the blocks' results in
ascending order, whatever else is in the batch. Prefill distributes tiles of rows over the threads;
the rows of a tile load each page once. Decode with a long context distributes tiles and blocks,
whose sums are merged at the end (split-K). In a mixed batch a prompt's chunk is most of the work,
so several threads share it. Values beyond a tile's last row are never read, and scores there are
replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import AttentionSpec

from . import bf16_attention
from . import vector as v
from .attention_block import group_shape, visit_block
from .attention_state import BLOCK, PAGE, Cache, QueryGroup, Sums, first_block, vectors
from .function import Parameter, prim_func
from .isa import Isa
from .kv_integers import Integers
from .tiles import over_rows

TILE_ROWS = 16  # maximum rows of a prompt that load each page once, together
FEW = 32  # with fewer tasks (tiles * KV heads) than this, blocks are distributed, too
MOST_PARTS = 2**14  # limit of rows * KV heads * blocks, which bounds the memory of split sums
# Tasks are assigned round-robin to this many queues, and each thread processes consecutive queues:
# the load is balanced whatever differs between tasks. The number is prime, so that no queue always
# gets the same block.
HANDS = 127
# Smallest heads * head_dim that uses several threads: below, a decode step is shorter than a launch
# of the thread pool.
PARALLEL_WIDTH = 512  # heads * head_dim


def attention(spec: AttentionSpec, isa: Isa) -> PrimFunc | None:
    """Return the attention kernel; None if pages or heads have unsupported sizes.

    Supported are pages of 16 tokens with two planes (transposed keys, values) and heads of a
    multiple of 4 elements.
    """
    if spec.page_size != PAGE or spec.head_dim % 4 or spec.scale <= 0 or spec.planes != 2:
        return None
    h, e = spec.heads, spec.head_dim
    parameters: list[Parameter] = [
        ("q", ("n", h, e), "float32"),
        ("positions", ("n",), "int32"),
        ("sequences", ("n",), "int32"),
        ("query_indptr", ("r1",), "int32"),
        ("page_indptr", ("r1",), "int32"),
        ("page_ids", ("p",), "int32"),
        *([("last_visible", ("n",), "int32")] if spec.last_visible else []),
        *([("sinks", (h,), "float32")] if spec.sinks else []),
        *([("bias", (h, spec.reach + 1), "float32")] if spec.reach else []),
        ("pages", ("count", *spec.page_shape), spec.page_dtype),
        ("out", ("n", h, e), "float32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        cache = Cache(
            Q=b["q"],
            Position=b["positions"],
            Ids=b["page_ids"],
            Pages=b["pages"],
            integers=Integers.of(spec),
            Bias=b.get("bias"),
            LastVisible=b.get("last_visible"),
        )
        rows = (b["sequences"], b["query_indptr"], b["page_indptr"])
        emitter = _Emitter(spec, isa, cache, *rows, b["out"], b.get("sinks"))
        emitter.emit(sizes["n"], sizes["p"])

    return prim_func(parameters, emit)


@dataclass(frozen=True, slots=True)
class _Emitter:
    """Emits the code paths of the attention kernel; its fields are the kernel's buffers."""

    spec: AttentionSpec
    isa: Isa
    cache: Cache
    Sequence: Any
    Query: Any
    Indptr: Any
    Out: Any
    Sinks: Any

    @property
    def shared(self) -> int:
        """Return the number of query heads that share a KV head."""
        return self.spec.heads // self.spec.kv_heads

    def emit(self, n: Any, p: Any) -> None:
        """Emit the kernel for `n` rows and `p` page ids."""
        if not bf16_attention.supported(self.spec, self.isa):
            self._exact(n, p)
            return
        with T.If(n >= bf16_attention.LEAST_STEP):
            with T.Then():
                self._by_bf16_tiles(n)
            with T.Else():
                self._exact(n, p)

    def _exact(self, n: Any, p: Any) -> None:
        """Emit all paths whose bits do not depend on other rows."""
        if self.spec.heads * self.spec.head_dim < PARALLEL_WIDTH:
            self._by_tiles(n, T.serial)
            return
        g, height = self.spec.kv_heads, group_shape(self.shared, self.isa)[0]
        blocks = p // (BLOCK // PAGE) + 1
        # Decode rows share no pages, so they run one by one; rows of a prompt share their pages.
        alone = T.Or(n == self.sequences, n * g * blocks > MOST_PARTS)
        rows = T.Select(alone, T.int64(1), T.int64(height))
        with T.If(T.And(T.ceildiv(n, rows) * g <= FEW, p > BLOCK // PAGE)):
            with T.Then():
                self._by_blocks(n, rows, blocks)
            with T.Else():
                self._by_tiles(n, T.parallel)

    @property
    def sequences(self) -> Any:
        """Return the number of sequences in the batch."""
        return self.Query.shape[0] - 1

    def _by_blocks(self, n: Any, rows: Any, blocks: Any) -> None:
        """Emit split-K decode: a task is a tile of `rows`, a KV head and a block of tokens.

        There are `blocks` blocks of tokens.
        """
        g = self.spec.kv_heads
        with T.sblock("blocks"):
            T.reads()
            T.writes()
            sums = Sums.alloc(n * g * blocks * self.shared, self.spec.head_dim)
            tasks = T.ceildiv(n, rows) * g * blocks
            with T.parallel(HANDS) as hand:
                with T.serial((tasks - hand + (HANDS - 1)) // HANDS) as i, T.sblock("task"):
                    T.reads()
                    T.writes()
                    task = v.let(hand + i * HANDS)
                    tile, kv_head = v.let(task // (g * blocks)), v.let(task // blocks % g)
                    block, end = v.let(task % blocks), v.let(T.min((tile + 1) * rows, n))

                    def run(first: Any, stop: Any) -> None:
                        self._block_of_run(sums, kv_head, first, stop, block, blocks)

                    self._over_runs(tile * rows, end, run)
            with T.serial(n * g) as i, T.sblock("rows"):
                T.reads()
                T.writes()
                total = Sums.alloc(self.shared, self.spec.head_dim)
                with T.serial(self.shared) as s:
                    total.clear(s)
                    last = self.cache.last(i // g)
                    begin = first_block(self.spec, self.cache.Position[i // g])
                    with T.serial(last // BLOCK + 1 - begin) as after:
                        block = begin + after
                        total.add(s, sums, (i * blocks + block) * self.shared + s, self.isa)
                    self._divide(i // g, i % g * self.shared + s, total, s)

    def _block_of_run(
        self, sums: Sums, kv_head: Any, first: Any, stop: Any, block: Any, blocks: Any
    ) -> None:
        """Emit the attention of rows `first` to `stop` of one sequence over one block of tokens."""
        g, height = self.spec.kv_heads, group_shape(self.shared, self.isa)[0]
        stride = g * blocks * self.shared

        def tile(height: int, i: Any) -> None:
            row = first + i
            with T.If(self._sees(row, height, block)), T.Then():
                slot = v.let(((row * g + kv_head) * blocks + block) * self.shared)
                with T.serial(height) as r, T.serial(self.shared) as s:
                    sums.clear(slot + r * stride + s)
                table = self._table(row)
                self._groups(height, sums, row, kv_head, slot, block, table, stride)

        over_rows(stop - first, (height, 1) if height > 1 else (1,), tile)

    def _over_runs(self, begin: Any, end: Any, emit: Callable[[Any, Any], None]) -> None:
        """Emit `emit(first, stop)` for each run of rows of one sequence in `begin` to `end`."""
        first = T.sblock_alloc_buffer((1,), "int64")
        T.buffer_store(first, begin, [0])
        with T.While(first[0] < end), T.sblock("run"):
            T.reads()
            T.writes()
            sequence = self.Sequence[first[0]]
            stop = v.let(T.min(end, T.Cast("int64", self.Query[sequence + 1])))
            emit(first[0], stop)
            T.buffer_store(first, stop, [0])

    def _by_tiles(self, n: Any, loop: Any) -> None:
        """Emit prefill: a task is a tile of rows and a KV head."""
        height = group_shape(self.shared, self.isa)[0]
        most = TILE_ROWS // height * height
        # Short prompts and decode steps get smaller tiles, so that all threads have work.
        rows = T.max(T.min(n // 16, T.int64(most)), T.int64(1))

        def task(kv_head: Any, begin: Any, end: Any) -> None:
            sums = Sums.alloc(most * self.shared, self.spec.head_dim)
            # A tile may contain rows of several sequences: it processes one run of rows after the
            # other.
            self._over_runs(begin, end, partial(self._run, sums, kv_head))

        self._each_tile(n, rows, loop, task)

    def _each_tile(self, n: Any, rows: Any, loop: Any, emit: Callable[..., None]) -> None:
        """Emit `emit(kv_head, begin, end)` for each KV head and tile of `rows` rows."""
        g, tiles = self.spec.kv_heads, T.ceildiv(n, rows)
        with loop(g * tiles) as task, T.sblock("task"):
            T.reads()
            T.writes()
            kv_head, turn = v.let(task % g), v.let(task // g)
            # Causal attention makes later tiles longer. Tiles are paired (first with last, second
            # with last but one), so that each thread's consecutive tasks add up to the same work.
            tile = v.let(T.Select(turn % 2 == 0, turn // 2, tiles - 1 - turn // 2))
            end = v.let(T.min((tile + 1) * rows, n))
            emit(kv_head, tile * rows, end)

    def _by_bf16_tiles(self, n: Any) -> None:
        """Emit prefill by matrix units; decode rows keep the other kernel."""

        def task(kv_head: Any, begin: Any, end: Any) -> None:
            sums = Sums.alloc(TILE_ROWS * self.shared, self.spec.head_dim)
            tile = bf16_attention.Bf16Tile.of(self.spec, self.isa, self.cache)

            def run(first: Any, stop: Any) -> None:
                with T.If(stop - first >= bf16_attention.LEAST):
                    with T.Then():
                        self._bf16_run(tile, sums, kv_head, first, stop)
                    with T.Else():
                        self._run(sums, kv_head, first, stop)

            self._over_runs(begin, end, run)

        self._each_tile(n, T.int64(TILE_ROWS), T.parallel, task)

    def _bf16_run(
        self, tile: bf16_attention.Bf16Tile, sums: Sums, kv_head: Any, first: Any, stop: Any
    ) -> None:
        """Emit the attention of rows `first` to `stop` of one sequence, for one KV head."""
        with T.sblock("matrix"):
            T.reads()
            T.writes()
            rows, table = v.let(stop - first), self._table(first)
            tile.take(first, rows, kv_head)
            with T.serial(TILE_ROWS * self.shared) as slot:
                sums.clear(slot)
            head = kv_head * self.shared
            group = QueryGroup(
                rows=rows, heads=1, row=first, head=head, kv_head=kv_head, slot=0, stride=1
            )
            begin = v.let(first_block(self.spec, self.cache.Position[first]))
            with T.serial(self.cache.last(stop - 1) // BLOCK + 1 - begin) as after:
                tile.visit(sums, group, begin + after, table)
            with T.serial(self.shared) as s, T.serial(rows) as r:
                slot = s * TILE_ROWS + r
                self._divide(*tile.place(slot, first, kv_head), sums, slot)

    def _run(self, sums: Sums, kv_head: Any, first: Any, stop: Any) -> None:
        """Emit the attention of rows `first` to `stop` of one sequence, for one KV head."""
        height = group_shape(self.shared, self.isa)[0]
        slots = v.let((stop - first) * self.shared)
        table = self._table(first)
        with T.serial(slots) as slot:
            sums.clear(slot)
        begin = v.let(first_block(self.spec, self.cache.Position[first]))
        with T.serial(self.cache.last(stop - 1) // BLOCK + 1 - begin) as after:
            block = begin + after

            def tile(height: int, i: Any) -> None:
                with T.If(self._sees(first + i, height, block)), T.Then():
                    slot = i * self.shared
                    self._groups(height, sums, first + i, kv_head, slot, block, table, self.shared)

            over_rows(stop - first, (height, 1) if height > 1 else (1,), tile)
        with T.serial(slots) as slot:
            row, head = first + slot // self.shared, kv_head * self.shared + slot % self.shared
            self._divide(row, head, sums, slot)

    def _sees(self, row: Any, height: int, block: Any) -> Any:
        """Return whether one of `height` rows from `row` on attends to a token of `block`.

        All these rows are of one sequence.
        """
        sees = self.cache.last(row + (height - 1)) >= block * BLOCK
        if self.spec.window is None:
            return sees
        return T.And(sees, first_block(self.spec, self.cache.Position[row]) <= block)

    def _table(self, row: Any) -> Any:
        """Return the index in the page ids where the sequence of `row` begins."""
        return v.let(self.Indptr[self.Sequence[row]])

    def _groups(
        self,
        height: int,
        sums: Sums,
        row: Any,
        kv_head: Any,
        slot: Any,
        block: Any,
        table: Any,
        stride: Any,
    ) -> None:
        """Emit one block of tokens for all query heads of `kv_head` in `height` rows.

        The sums of the first row begin at `slot`; the sums of the next row are `stride` slots
        later.
        """
        heads = group_shape(self.shared, self.isa)[1]
        with T.serial(self.shared // heads) as t:
            group = QueryGroup(
                rows=height,
                heads=heads,
                row=row,
                head=kv_head * self.shared + t * heads,
                kv_head=kv_head,
                slot=slot + t * heads,
                stride=stride,
            )
            visit_block(self.spec, self.isa, self.cache, sums, group, block, table)

    def _divide(self, row: Any, head: Any, sums: Sums, slot: Any) -> None:
        """Emit out[row, head] = (sum of weighted values) / (sum of weights)."""
        with T.sblock("divide"):
            T.reads()
            T.writes()
            total = v.sum_lanes(sums.total[slot, v.span(0, 16)], 16)
            if self.Sinks is not None:
                above = v.let(self.Sinks[head] * T.float32(math.log2(math.e)) - sums.largest[slot])
                total = total + v.exp2(T.min(above, T.float32(126)), 1, self.isa.fma)
            inverse = v.let(T.float32(1) / total)
            for span, lanes in vectors(self.spec.head_dim):
                value = sums.out[slot, span] * v.splat(inverse, lanes)
                T.buffer_store(self.Out, value, [row, head, span])

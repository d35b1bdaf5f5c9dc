"""Bidirectional attention over the rows of a step, on CPUs.

A tile is up to 16 rows of one sequence and a head; a vector has one element for each row of the
tile, so that scores, softmax and sums need no reduction across lanes. Tiles are counted from the
sequence's first row: a short text is one tile, wherever it stands in the step. A task is a head and
the tiles that begin in a chunk of 64 rows; it allocates its buffers once. Keys and values of a
block are first copied next to each other: their distance in qkv may be a multiple of 4 KB, and
would share few sets of L1.

A row visits the blocks of its sequence, counted from the sequence's first row, in ascending order,
and an online softmax merges them; each lane is computed by itself. So a row's bits do not depend on
the tile, nor on other sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import RaggedAttentionSpec

from . import vector as v
from .function import Parameter, prim_func
from .isa import Isa
from .tiles import over_rows

LANES = 16  # rows of a tile
CHUNK = 64  # rows of a task, which takes the tiles that begin in them
BLOCK = 128  # keys of a block
LOWEST = -3.0e38
_LOG2_E = 1.4426950408889634
_ALL = v.span(0, LANES)


def ragged_attention(spec: RaggedAttentionSpec, isa: Isa) -> PrimFunc:
    """Return the kernel (qkv, sequences, query_indptr, bias if any, out); see the spec."""
    h, e = spec.heads, spec.head_dim
    reach = spec.reach or 0
    parameters: list[Parameter] = [
        ("qkv", ("n", spec.width), "float32"),
        ("sequences", ("n",), "int32"),
        ("query_indptr", ("r1",), "int32"),
        *([("bias", (h, 2 * reach + 1), "float32")] if spec.reach else []),
        ("out", ("n", h * e), "float32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        rows = _Rows(b["qkv"], b["sequences"], b["query_indptr"], b.get("bias"), b["out"])
        _Emitter(spec, isa, rows).emit(sizes["n"])

    return prim_func(parameters, emit)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The kernel's buffers."""

    Qkv: Any
    Sequence: Any
    Indptr: Any
    Bias: Any
    Out: Any


@dataclass(frozen=True, slots=True)
class _Memory:
    """A task's buffers, float32. Vectors have an element for each row of the tile."""

    queries: Any  # [e, 16], times the scale and log2(e)
    keys: Any  # [BLOCK, e]
    values: Any  # [BLOCK, e]
    weights: Any  # [BLOCK, 16], scores, then weights of the softmax
    largest: Any  # [16], the maximum so far
    total: Any  # [16], the sum of weights
    sums: Any  # [e, 16], the sums of weight * value

    @classmethod
    def alloc(cls, e: int) -> _Memory:
        """Allocate the buffers; needs an enclosing sblock."""
        shapes = ((e, LANES), (BLOCK, e), (BLOCK, e), (BLOCK, LANES), (LANES,), (LANES,))
        return cls(*(T.sblock_alloc_buffer(s, "float32") for s in (*shapes, (e, LANES))))


@dataclass(frozen=True, slots=True)
class _Run:
    """A tile: rows of one sequence, and the rows that they attend to; all are rows of the step.

    The rows are first .. stop - 1, the sequence's begin .. end - 1.
    """

    head: Any
    first: Any
    stop: Any
    begin: Any
    end: Any


@dataclass(frozen=True, slots=True)
class _Emitter:
    spec: RaggedAttentionSpec
    isa: Isa
    rows: _Rows

    @property
    def together(self) -> int:
        """Return how many vectors of sums the registers hold."""
        return 8 if self.isa.accumulators >= 12 else 4 if self.isa.accumulators >= 5 else 1

    def emit(self, n: Any) -> None:
        """Emit the kernel for `n` rows."""
        chunks = T.ceildiv(n, CHUNK)
        # The chunks of a head follow each other: they read the same keys and values.
        with T.parallel(self.spec.heads * chunks) as task, T.sblock("task"):
            T.reads()
            T.writes()
            head, chunk = v.let(task // chunks), v.let(task % chunks)
            memory = _Memory.alloc(self.spec.head_dim)
            end = v.let(T.min((chunk + 1) * CHUNK, n))
            first = T.sblock_alloc_buffer((1,), "int64")
            T.buffer_store(first, self._first_tile(chunk * CHUNK), [0])
            with T.While(first[0] < end), T.sblock("run"):
                T.reads()
                T.writes()
                begin, after = self._sequence_of(first[0])
                stop = v.let(T.min(first[0] + LANES, after))
                self._run(memory, _Run(head, v.let(first[0]), stop, begin, after))
                T.buffer_store(first, stop, [0])

    def _sequence_of(self, row: Any) -> tuple[Any, Any]:
        """Return the first row of the sequence of `row`, and the row after its last."""
        sequence = v.let(self.rows.Sequence[row])
        begin, after = (self.rows.Indptr[sequence + i] for i in (0, 1))
        return v.let(T.Cast("int64", begin)), v.let(T.Cast("int64", after))

    def _first_tile(self, row: Any) -> Any:
        """Return where the first tile begins that does not begin before `row`."""
        begin, after = self._sequence_of(row)
        return T.min(begin + T.ceildiv(row - begin, LANES) * LANES, after)

    def _run(self, memory: _Memory, run: _Run) -> None:
        """Emit the attention of rows of one sequence, for one head."""
        self._load_queries(memory, run)
        T.buffer_store(memory.largest, v.splat(LOWEST, LANES), [_ALL])
        T.buffer_store(memory.total, v.splat(0.0, LANES), [_ALL])
        with T.serial(self.spec.head_dim) as d:
            T.buffer_store(memory.sums, v.splat(0.0, LANES), [d, _ALL])
        low, high = run.begin, run.end
        if self.spec.window is not None:
            low = v.let(T.max(run.begin, run.first - self.spec.window))
            high = v.let(T.min(run.end, run.stop + self.spec.window))
        begin = v.let((low - run.begin) // BLOCK)
        with T.serial(T.ceildiv(high - run.begin, BLOCK) - begin) as i, T.sblock("block"):
            T.reads()
            T.writes()
            start = v.let(run.begin + (begin + i) * BLOCK)
            key = v.let(T.max(low, start))
            self._block(memory, run, key, v.let(T.min(high, start + BLOCK) - key))
        self._store(memory, run)

    # ---- queries, keys, values ----

    def _load_queries(self, memory: _Memory, run: _Run) -> None:
        """Emit queries[d, i] = q[row i, d] * factor; rows beyond the last are the last one."""
        e, factor = self.spec.head_dim, self.spec.scale * _LOG2_E
        rows = [v.let(T.min(run.first + i, run.stop - 1)) for i in range(LANES)]
        if e % LANES:
            for i, row in enumerate(rows):
                with T.serial(e) as d:
                    q = self.rows.Qkv[row, run.head * e + d] * T.float32(factor)
                    T.buffer_store(memory.queries, q, [d, i])
            return
        with T.serial(e // LANES) as c, T.sblock("queries"):
            T.reads()
            T.writes()
            column = v.span(run.head * e + c * LANES, LANES)
            vectors = v.transposed([self.rows.Qkv[row, column] for row in rows])
            for d, x in enumerate(vectors):
                scaled = x * v.splat(factor, LANES)
                T.buffer_store(memory.queries, scaled, [c * LANES + d, _ALL])

    def _copy(self, target: Any, key: Any, count: Any, column: Any) -> None:
        """Emit target[i] = the head's elements of row key + i, from `column` of qkv on."""
        lanes = v.widest(self.spec.head_dim)
        with T.serial(count) as i, T.serial(self.spec.head_dim // lanes) as c:
            elements = self.rows.Qkv[key + i, v.span(column + c * lanes, lanes)]
            T.buffer_store(target, elements, [i, v.span(c * lanes, lanes)])

    # ---- one block of keys ----

    def _block(self, memory: _Memory, run: _Run, key: Any, count: Any) -> None:
        """Emit the attention to `count` rows from `key` on."""
        h, g, e = self.spec.heads, self.spec.kv_heads, self.spec.head_dim
        kv_head = run.head // (h // g)
        self._copy(memory.keys, key, count, (h + kv_head) * e)
        self._copy(memory.values, key, count, (h + g + kv_head) * e)
        together = self.together
        heights = tuple(height for height in (8, 4, 2, 1) if height <= together)
        over_rows(count, heights, lambda height, i: self._scores(memory, height, i))
        if self.spec.window is not None or self.rows.Bias is not None:
            self._change_scores(memory, run, key, count)
        scale = self._softmax(memory, run, key, count)
        step = next(s for s in (together, 4, 2, 1) if e % s == 0 and s <= together)
        with T.serial(e // step) as d, T.sblock("values"):
            T.reads()
            T.writes()
            self._add_values(memory, count, d * step, step, scale)

    def _scores(self, memory: _Memory, height: int, first: Any) -> None:
        """Emit weights[first + c] = keys[first + c] . queries, for `height` keys."""
        with T.sblock("scores"):
            T.reads()
            T.writes()
            accs = [T.sblock_alloc_buffer((LANES,), "float32") for _ in range(height)]
            for acc in accs:
                T.buffer_store(acc, v.splat(0.0, LANES), [_ALL])
            with T.serial(self.spec.head_dim) as d:
                q = v.let(memory.queries[d, _ALL])
                for c, acc in enumerate(accs):
                    key = v.splat(memory.keys[first + c, d], LANES)
                    T.buffer_store(acc, v.fma(key, q, acc[_ALL], LANES, self.isa.fma), [_ALL])
            for c, acc in enumerate(accs):
                T.buffer_store(memory.weights, acc[_ALL], [first + c, _ALL])

    def _change_scores(self, memory: _Memory, run: _Run, key: Any, count: Any) -> None:
        """Emit biases of scores, and LOWEST for keys outside of a row's window."""
        with T.serial(count) as i, T.serial(LANES) as lane:
            distance = key + i - run.first - lane
            score = memory.weights[i, lane]
            if self.rows.Bias is not None:
                reach = self.spec.reach or 0
                place = T.max(T.min(distance, reach), -reach) + reach
                score = score + self.rows.Bias[run.head, place] * T.float32(_LOG2_E)
            if self.spec.window is not None:
                score = T.Select(T.abs(distance) <= self.spec.window, score, T.float32(LOWEST))
            T.buffer_store(memory.weights, score, [i, lane])

    def _softmax(self, memory: _Memory, run: _Run, key: Any, count: Any) -> Any:
        """Emit scores -> weights with the new maximum and sum; return the factor of old sums."""
        old = v.let(memory.largest[_ALL])
        with T.serial(count) as i:
            top = v.maximum(memory.weights[i, _ALL], memory.largest[_ALL])
            T.buffer_store(memory.largest, top, [_ALL])
        new = v.let(memory.largest[_ALL])
        scale = v.let(v.exp2(old - new, LANES, self.isa.fma))
        T.buffer_store(memory.total, memory.total[_ALL] * scale, [_ALL])
        with T.serial(count) as i, T.sblock("weights"):
            T.reads()
            T.writes()
            score = v.let(memory.weights[i, _ALL])
            weight = v.exp2(score - new, LANES, self.isa.fma)
            if self.spec.window is not None:  # a row may see no key of a block
                seen = score > v.splat(LOWEST, LANES)
                weight = T.Select(seen, weight, v.splat(0.0, LANES))
            weight = v.let(weight)
            T.buffer_store(memory.weights, weight, [i, _ALL])
            T.buffer_store(memory.total, memory.total[_ALL] + weight, [_ALL])
        return scale

    def _add_values(self, memory: _Memory, count: Any, first: Any, height: int, scale: Any) -> None:
        """Emit sums[first + c] = sums * scale + weights . values, for `height` elements."""
        accs = [T.sblock_alloc_buffer((LANES,), "float32") for _ in range(height)]
        for c, acc in enumerate(accs):
            T.buffer_store(acc, memory.sums[first + c, _ALL] * scale, [_ALL])
        with T.serial(count) as i:
            weight = v.let(memory.weights[i, _ALL])
            for c, acc in enumerate(accs):
                value = v.splat(memory.values[i, first + c], LANES)
                T.buffer_store(acc, v.fma(value, weight, acc[_ALL], LANES, self.isa.fma), [_ALL])
        for c, acc in enumerate(accs):
            T.buffer_store(memory.sums, acc[_ALL], [first + c, _ALL])

    # ---- results ----

    def _store(self, memory: _Memory, run: _Run) -> None:
        """Emit out[row i, d] = sums[d, i] / total[i]."""
        e, count = self.spec.head_dim, run.stop - run.first
        T.buffer_store(memory.total, v.splat(1.0, LANES) / memory.total[_ALL], [_ALL])
        if e % LANES:
            with T.serial(count) as i, T.serial(e) as d:
                value = memory.sums[d, i] * memory.total[i]
                T.buffer_store(self.rows.Out, value, [run.first + i, run.head * e + d])
            return
        with T.serial(e // LANES) as c, T.sblock("out"):
            T.reads()
            T.writes()
            tile = T.sblock_alloc_buffer((LANES, LANES), "float32")
            inverse = v.let(memory.total[_ALL])
            vectors = [memory.sums[c * LANES + d, _ALL] * inverse for d in range(LANES)]
            for i, row in enumerate(v.transposed(vectors)):
                T.buffer_store(tile, row, [i, _ALL])
            column = run.head * e + c * LANES
            self._each(
                count,
                lambda i: T.buffer_store(
                    self.rows.Out, tile[i, _ALL], [run.first + i, v.span(column, LANES)]
                ),
            )

    @staticmethod
    def _each(count: Any, emit: Callable[[Any], None]) -> None:
        with T.serial(count) as i:
            emit(i)

"""RoPE, cache append and attention of decode rows, one per sequence, in one launch or two.

A block computes some heads of one row that share a KV head. It rotates their q and its own copy of
k; one of the blocks writes k and v to the cache. The row's own key and value come from shared
memory, so no block waits for another. With contexts longer than a split each split has its own
blocks (see `splits`), and a second kernel merges their states, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import PagedAttentionSpec

from . import emit as e
from .attend import TILE, Attend, Block, SharedBuffers, first_seen
from .attention import heads_of_block
from .batch_table import Table
from .limits import GpuLimits
from .rope import Load, TokenSlot, normed, rotated, threads_of, turns
from .splits import SPLIT


@dataclass(frozen=True, slots=True)
class DecodeTensors:
    """TIR buffers of the fused decode attention."""

    qkv: Any  # [n, qkv_heads, e]
    table: Table
    query_indptr: Any  # [r + 1]
    norms: tuple[Load, ...]  # loads of the norm weights of q and of k; () without norms
    pages: Any
    out: Any  # [n, h, e]
    parts: Any  # [slots, h, e + 2]: sums of weighted values, sum of weights, largest score
    axes: Any = None  # positions of M-RoPE [n, 3]; None: frequencies take the rows' own
    last_visible: Any = None  # [n], if the spec has it; of a decode row, its own position


def bytes_beyond(spec: PagedAttentionSpec, limits: GpuLimits) -> Callable[[int], int]:
    """Return a function: heads of a block -> bytes of shared memory beyond `attend.bytes_of`."""
    e_, own = spec.head_dim, kv_of_block(spec)
    norms = threads_of(limits) if spec.qk_norm_eps is not None else 0
    keys = 0 if spec.kv == "none" else 1
    normed = keys + spec.v_norm

    return lambda heads: 4 * ((heads + own + keys) * e_ + norms * (heads + normed))


def kv_of_block(spec: PagedAttentionSpec) -> int:
    """Return how many heads of qkv (key, value) a block reads after its query heads."""
    return {"both": 2, "keys": 1, "none": 0}[spec.kv]


def launch_decode(
    spec: PagedAttentionSpec, limits: GpuLimits, tensors: DecodeTensors, n: Any
) -> None:
    """Emit the single kernel for batches in which every row is a decode row."""
    heads = heads_of_block(spec.attention(), limits, bytes_beyond(spec, limits))
    threads = threads_of(limits)

    def block(block: Any, row: Any, thread: Any) -> None:
        work = DecodeBlock(spec, tensors, heads, e.let(block * heads), row, thread, limits)
        work.load_qkv()
        work.attend_unsplit()

    e.launch((spec.heads // heads, n), threads, block)


def launch_split_decode(
    spec: PagedAttentionSpec, limits: GpuLimits, tensors: DecodeTensors, slots: Any, sequences: Any
) -> None:
    """Emit the split-K kernels for rows that have slots: states of splits, then their merge."""
    heads = heads_of_block(spec.attention(), limits, bytes_beyond(spec, limits))
    threads = threads_of(limits)
    table = tensors.table

    def block(slot: Any, block: Any, thread: Any) -> None:
        table_row = e.let(table.row(slots, slot))
        row, first_head = e.let(T.max(table_row, 0)), e.let(block * heads)
        # A slot without a row visits no tile, and stores an unused state.
        first = e.let(T.if_then_else(table_row < 0, 0, (slot - table.slot(row)) * SPLIT))
        work = DecodeBlock(spec, tensors, heads, first_head, row, thread, limits, table_row >= 0)
        work.load_qkv()
        _store_state(work.attend(first), tensors.parts, slot, first_head)

    e.launch((slots, spec.heads // heads), threads, block)
    _launch_merge(spec, limits, tensors, sequences)


def launch_split_rows(
    spec: PagedAttentionSpec,
    limits: GpuLimits,
    tensors: DecodeTensors,
    q: Any,
    slots: Any,
    sequences: Any,
) -> None:
    """Emit the split-K kernels for rows whose q [n, h, e] is rotated, and their keys in pages."""
    attention, d = spec.attention(), spec.head_dim
    heads = heads_of_block(attention, limits, lambda k: 0)
    threads = threads_of(limits)
    table = tensors.table

    def block(slot: Any, block: Any, thread: Any) -> None:
        table_row = e.let(table.row(slots, slot))
        row, first_head = e.let(T.max(table_row, 0)), e.let(block * heads)
        first = e.let(T.if_then_else(table_row < 0, 0, (slot - table.slot(row)) * SPLIT))
        position = e.let(T.if_then_else(table_row < 0, -1, table.position(row)))
        shared = SharedBuffers.of(1, heads, d)
        own = Block(1, heads, first_head, thread, threads)
        attend = Attend(attention, tensors.pages, table, shared, own)

        def load(i: Any) -> None:
            value = q[row, first_head + e.div(i, d), e.mod(i, d)]
            T.buffer_store(shared.q, value * e.number(spec.scale), [i])

        e.over(heads * d, threads, thread, load)
        begin = e.let(first_seen(spec, position))
        attend.split(e.let(table.first(row)), first, begin, position, position + 1)
        _store_state(attend, tensors.parts, slot, first_head)

    e.launch((slots, spec.heads // heads), threads, block)
    _launch_merge(spec, limits, tensors, sequences)


def _launch_merge(
    spec: PagedAttentionSpec, limits: GpuLimits, tensors: DecodeTensors, sequences: Any
) -> None:
    """Emit the kernel that merges the states of the splits of rows that have slots."""
    merging = max(TILE, limits.block_for(spec.head_dim, most=128))  # threads of a merging block

    def merge(head: Any, sequence: Any, thread: Any) -> None:
        row = e.let(tensors.query_indptr[sequence])
        slot = e.let(tensors.table.slot(row))
        e.when(slot >= 0, lambda: _merge(spec, tensors, merging, head, row, slot, thread))

    e.launch((spec.heads, sequences), merging, merge)


def _store_state(attend: Attend, parts: Any, slot: Any, first_head: Any) -> None:
    """Emit the stores of a split's state, which `_merge` reads."""
    d = attend.spec.head_dim

    def store(i: int, unit: Any, k: Any) -> None:
        head = e.let(first_head + unit)
        T.buffer_store(parts, attend.sums[i], [slot, head, k])

        def state() -> None:
            T.buffer_store(parts, attend.totals[i], [slot, head, d])
            T.buffer_store(parts, attend.shared.largest[unit], [slot, head, d + 1])

        e.when(k == 0, state)

    attend.each_slot(store)


def _merge(
    spec: PagedAttentionSpec,
    tensors: DecodeTensors,
    threads: int,
    head: Any,
    row: Any,
    first_slot: Any,
    thread: Any,
) -> None:
    """Emit one head of a row, merged from the states of its splits."""
    d, parts, rows = spec.head_dim, tensors.parts, tensors.table
    shared = SharedBuffers.of(1, 1, d)
    block = Block(1, 1, head, thread, threads)
    attend = Attend(spec.attention(), tensors.pages, rows, shared, block)
    attend.start()
    position = rows.position(row)
    before = first_seen(spec, position) // SPLIT
    with T.serial(position // SPLIT + 1 - before) as split:
        slot = e.let(first_slot + before + split)

        def add(i: int, _unit: Any, k: Any) -> None:
            largest, total, value = (e.let(parts[slot, head, j]) for j in (d + 1, d, k))
            attend.merged(i, largest, total, value)

        attend.each_slot(add)
    attend.divide(lambda _i, _unit, k, value: e.store(tensors.out, value, row, head, k))


class DecodeBlock:
    """Emits the steps of one decode block, which computes some heads of one row."""

    def __init__(
        self,
        spec: PagedAttentionSpec,
        tensors: DecodeTensors,
        heads: int,
        first_head: Any,
        row: Any,
        thread: Any,
        limits: GpuLimits,
        some: Any = None,
    ) -> None:
        """Initialize; `some` is a condition whether the row exists, None: it does."""
        self.spec, self.tensors, self.heads = spec, tensors, heads
        self.first_head, self.row = first_head, row
        self.thread, self.limits, self.threads = thread, limits, threads_of(limits)
        d = spec.head_dim
        self.group = spec.heads // spec.kv_heads
        self.kv_head = e.let(e.div(first_head, self.group))
        position = tensors.table.position(row)
        self.position = e.let(position if some is None else T.if_then_else(some, position, -1))
        self.width = heads + kv_of_block(spec)  # heads of qkv that the block reads
        self.raw = e.shared((self.width * d,))  # the row's q, k, v, as the linear computed them
        self.shared = SharedBuffers.of(1, heads, d)
        self.key = None if spec.kv == "none" else e.shared((d,))
        at = (self.width - 1) * d
        self.value: Load = lambda k: self.raw[at + k]

    def head_of(self, local: Any) -> Any:
        """Return the index in qkv of head `local` of the block: its query heads, then k, then v."""
        h, g = self.spec.heads, self.spec.kv_heads
        other = h + self.kv_head + T.if_then_else(local > self.heads, g, 0)
        return T.if_then_else(local < self.heads, self.first_head + local, other)

    def load_qkv(self) -> None:
        """Emit the copy of the row's q, k and v heads to shared memory."""
        d = self.spec.head_dim

        def load(i: Any) -> None:
            index = (self.row, self.head_of(e.div(i, d)), e.mod(i, d))
            T.buffer_store(self.raw, e.load(self.tensors.qkv, *index), [i])

        e.over(self.width * d, self.threads, self.thread, load)
        e.barrier()

    def attend_unsplit(self) -> None:
        """Emit RoPE, append and attention over the whole context, after `load_qkv`."""
        self._rotate()
        self._append(first=self.position // SPLIT * SPLIT)
        attend = self._attend()
        attend.unsplit(self._first_page(), self._begin(), self.position, self._stored())
        attend.divide(
            lambda slot, unit, k, value: e.store(
                self.tensors.out, value, self.row, self.first_head + unit, k
            )
        )

    def attend(self, first: Any) -> Attend:
        """Emit RoPE, append and attention of the split from token `first` on, after `load_qkv`."""
        self._rotate()
        self._append(first)
        attend = self._attend()
        attend.split(self._first_page(), first, self._begin(), self.position, self._stored())
        return attend

    def _stored(self) -> Any:
        """Return the number of tokens that are read from pages."""
        return self.position + 1 if self.key is None else self.position

    def _begin(self) -> Any:
        return e.let(first_seen(self.spec, self.position))

    def _first_page(self) -> Any:
        return e.let(self.tensors.table.first(self.row))

    def _attend(self) -> Attend:
        dtype, own = self.spec.kv_dtype, None
        if (key := self.key) is not None:
            own = (lambda k: key[k], lambda k: e.rounded(dtype, self.value(k)))
        return Attend(
            self.spec.attention(),
            self.tensors.pages,
            self.tensors.table,
            self.shared,
            Block(1, self.heads, self.first_head, self.thread, self.threads),
            own,
        )

    def _rotate(self) -> None:
        """Emit rotated q, times the scale of scores; rotated k, rounded as stored.

        V is normalized if the spec says so.
        """
        spec, heads, d = self.spec, self.heads, self.spec.head_dim
        rotated_heads = heads if self.key is None else heads + 1
        loads: list[Load] = [lambda k, at=i * d: self.raw[at + k] for i in range(rotated_heads)]
        rope = spec.rope()
        weights: list[Load | None] = []
        if self.tensors.norms:
            q_norm, k_norm = self.tensors.norms
            weights += [*[q_norm] * heads, k_norm][:rotated_heads]
            values = [self.value] if spec.v_norm else []
            both = [*loads, *values]
            weights += [None] * len(values)
            loads = normed(rope, both, weights, self.thread, self.limits)
            self.value = loads.pop() if values else self.value
        scale, dtype = e.number(spec.scale), spec.kv_dtype

        def query(i: int) -> Callable[[Any, Any], None]:
            return lambda k, v: T.buffer_store(self.shared.q, v * scale, [i * d + k])

        def key(k: Any, v: Any) -> None:
            T.buffer_store(self.key, e.rounded(dtype, v), [k])

        stores = [*(query(i) for i in range(heads)), key][:rotated_heads]

        turn = turns(spec.axes, self.tensors.axes, self.row, self.position)

        def rotate(k: Any) -> None:
            rotated(rope, loads, stores, k, turn, weights)

        e.over(d, self.threads, self.thread, rotate)
        e.barrier()

    def _append(self, first: Any) -> None:
        """Emit the append of k and v, only in the block whose split begins at `first`.

        Of several blocks with the same KV head, the first one stores.
        """
        if (key := self.key) is None:
            return

        def store(k: Any) -> None:
            slot = TokenSlot(
                self.spec.rope(), self.tensors.pages, self.tensors.table, self.row, self.position
            )
            slot.store(0, self.kv_head, k, key[k])
            slot.store(1, self.kv_head, k, self.value(k))

        has = T.And(
            self.position // SPLIT * SPLIT == first, e.mod(self.first_head, self.group) == 0
        )
        has = T.And(has, self.position >= 0)
        e.when(has, lambda: e.over(self.spec.head_dim, self.threads, self.thread, store))

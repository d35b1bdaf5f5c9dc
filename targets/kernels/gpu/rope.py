"""Rotary embedding of q and k, and the append of k and v to the paged cache: one block per head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import RopeAppendSpec

from . import emit as e
from .batch_table import Arrays, BatchRows, element
from .kv_integers import Integers, Place
from .limits import GpuLimits
from .norm import inverses_rms

Load = Callable[[Any], Any]  # function: k -> element k of a head
Store = Callable[[Any, Any], None]  # arguments: k, and the value of element k


@dataclass(frozen=True, slots=True)
class RopeTensors:
    """TIR buffers of RoPE with cache append."""

    qkv: Any  # [n, qkv_heads, e]
    rows: BatchRows
    norms: tuple[Load, ...]  # loads of the norm weights of q and of k; () without norms
    pages: Any
    q_out: Any  # [n, h, e], float32 or float16
    axes: Any = None  # positions of M-RoPE [n, 3]; None: frequencies take the rows' own


def threads_of(limits: GpuLimits) -> int:
    """Return the threads of each block that sums a head's squares.

    They fix the order of the sum.
    """
    return min(128, limits.threads_per_block)


def rope_append(spec: RopeAppendSpec, limits: GpuLimits) -> PrimFunc:
    """Return the RoPE-append kernel; see `KernelSet.rope_append` for its parameters."""
    h, size, width = spec.heads, spec.head_dim, spec.qkv_heads
    names = () if spec.qk_norm_eps is None else ("q_norm", "k_norm")

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        rows = Arrays(b["positions"], b["sequences"], b["page_indptr"], b["page_ids"])
        norms: tuple[Load, ...] = tuple(lambda k, w=b[name]: w[k] for name in names)
        by_axis = b.get("rope_positions")
        tensors = RopeTensors(b["qkv"], rows, norms, b["pages"], b["q_out"], by_axis)
        # Two launches, one for q and one for k and v, where one would bind too many tensors.
        most = limits.storage_buffers
        some = names and most and most < 9 + bool(spec.axes) and width > h
        parts = (0, h, width) if some else (0, width)
        for first, stop in pairwise(parts):
            launch_rope(spec, limits, tensors, sizes["n"], range(first, stop))

    return e.prim_func(
        [
            ("qkv", ("n", width, size), "float32"),
            ("positions", ("n",), "int32"),
            ("sequences", ("n",), "int32"),
            ("page_indptr", ("r1",), "int32"),
            ("page_ids", ("p",), "int32"),
            *axes_parameters(spec.axes),
            *((name, (size,), "float32") for name in names),
            ("pages", ("count", *spec.page_shape), spec.page_dtype),
            ("q_out", ("n", h, size), "float32"),
        ],
        emit,
    )


def axes_parameters(axes: tuple[int, ...]) -> list[e.Parameter]:
    """Return the parameter of the rows' positions, which only M-RoPE has."""
    return [("rope_positions", ("n", 3), "int32")] if axes else []


def turns(axes: tuple[int, ...], positions: Any, row: Any, position: Any) -> Load:
    """Return a function: frequency j -> the position of a row that it takes.

    Args:
        axes: the spec's.
        positions: the positions of M-RoPE [n, 3], if there are axes.
        row: the row.
        position: its position in its sequence.
    """
    if not axes:
        return lambda j: position
    return lambda j: positions[row, T.Cast("int32", e.constant(axes, j))]


def launch_rope(
    spec: RopeAppendSpec, limits: GpuLimits, tensors: RopeTensors, n: Any, heads: range
) -> None:
    """Emit the kernel for the heads `heads` of qkv, for rows without split-K slots.

    With a cache of integers it is for all rows.
    """

    def emit(block: Any, row: Any, t: Any) -> None:
        _head(spec, tensors, row, e.let(block + heads.start), heads, t, limits)

    e.launch((len(heads), n), threads_of(limits), emit)


def _head(
    spec: RopeAppendSpec,
    tensors: RopeTensors,
    row: Any,
    head: Any,
    heads: range,
    thread: Any,
    limits: GpuLimits,
) -> None:
    """Emit one head of qkv.

    `heads` are the launch's heads: tests that are true for all of them are omitted.
    """
    h, g, size = spec.heads, spec.kv_heads, spec.head_dim
    threads = threads_of(limits)
    x = e.shared((size,))
    e.over(
        size, threads, thread, lambda k: T.buffer_store(x, e.load(tensors.qkv, row, head, k), [k])
    )
    e.barrier()
    load: Load = x.__getitem__
    value = load
    weights: list[Load | None] = []
    # values are normalized, too (unused without `v_norm`), to avoid a branch around barriers
    if tensors.norms:
        weights = [_weight(spec, tensors, head, heads), *([None] if spec.v_norm else [])]
        load, *plain = normed(spec, [load] * len(weights), weights, thread, limits)
        value = plain[0] if plain else value
    position = e.let(tensors.rows.position(row))
    turn = turns(spec.axes, tensors.axes, row, position)
    if integers := Integers.of(spec):
        head_ = _IntegerHead(spec, tensors, row, head, thread, threads)
        head_.emit(integers, heads, load, value, (position, turn), weights)
        return

    def query(k: Any) -> None:
        rotated(
            spec,
            [load],
            [lambda k, v: e.store(tensors.q_out, v, row, head, k)],
            k,
            turn,
            weights,
        )

    def cache(k: Any) -> None:
        slot = TokenSlot(spec, tensors.pages, tensors.rows, row, position)
        e.if_else(
            head < h + g,
            lambda: rotated(
                spec, [load], [lambda k, v: slot.store(0, head - h, k, v)], k, turn, weights
            ),
            lambda: slot.store(1, head - (h + g), k, value(k)),
        )

    def both(k: Any) -> None:
        slot = TokenSlot(spec, tensors.pages, tensors.rows, row, position)
        rotated(spec, [load], [lambda k, v: slot.store(0, head - h, k, v)], k, turn, weights)
        slot.store(1, head - h, k, value(k))

    def store() -> None:
        append = both if spec.kv == "keys" else cache
        if heads.stop <= h:
            e.over(size, threads, thread, query)
        elif heads.start >= h:
            e.over(size, threads, thread, append)
        else:
            e.if_else(
                head < h,
                lambda: e.over(size, threads, thread, query),
                lambda: e.over(size, threads, thread, append),
            )

    # A row with slots returns only here, which wastes little work. A branch around the barriers
    # above would be uniform, but PoCL 3.1 computes wrong numbers with it.
    slot = e.let(tensors.rows.slot(row))
    e.when(slot < 0, store)


@dataclass(frozen=True, slots=True)
class _IntegerHead:
    """Emits one head of qkv for a cache of integers, whose scales depend on all its elements."""

    spec: RopeAppendSpec
    tensors: RopeTensors
    row: Any
    head: Any
    thread: Any
    threads: int

    def emit(
        self,
        integers: Integers,
        heads: range,
        load: Load,
        value: Load,
        positions: tuple[Any, Load],
        weights: Sequence[Load | None],
    ) -> None:
        """Emit the rotated head in shared memory, then its stores; arguments as in `_head`.

        `positions` are the row's position and its `turns`.
        """
        position, turn = positions
        spec, h, g = self.spec, self.spec.heads, self.spec.kv_heads
        elements = e.shared((spec.head_dim,))  # rotated, or of heads of values as they are

        def rotate(k: Any) -> None:
            def store(k: Any, value: Any) -> None:
                T.buffer_store(elements, value, [k])

            rotated(spec, [load], [store], k, turn, weights)

        def make(k: Any) -> None:
            if heads.stop <= h + g:
                rotate(k)
                return
            e.if_else(
                self.head < h + g,
                lambda: rotate(k),
                lambda: T.buffer_store(elements, value(k), [k]),
            )

        def query() -> None:
            self._over(lambda k: e.store(self.tensors.q_out, elements[k], self.row, self.head, k))

        def append() -> None:
            slot = TokenSlot(spec, self.tensors.pages, self.tensors.rows, self.row, position)
            if spec.kv == "keys":
                at = slot.place(self.head - h)
                integers.store_key(at, elements.__getitem__, self.threads, self.thread)
                integers.store_value(at, value, self.threads, self.thread)
                return
            e.if_else(
                self.head < h + g,
                lambda: integers.store_key(
                    slot.place(self.head - h), elements.__getitem__, self.threads, self.thread
                ),
                lambda: integers.store_value(
                    slot.place(self.head - (h + g)), elements.__getitem__, self.threads, self.thread
                ),
            )

        self._over(make)
        e.barrier()
        if heads.stop <= h:
            query()
        elif heads.start >= h:
            append()
        else:
            e.if_else(self.head < h, query, append)

    def _over(self, emit: Callable[[Any], None]) -> None:
        e.over(self.spec.head_dim, self.threads, self.thread, emit)


def _weight(spec: RopeAppendSpec, tensors: RopeTensors, head: Any, heads: range) -> Load:
    q_norm, k_norm = tensors.norms
    if heads.stop <= spec.heads:
        return q_norm
    if heads.start >= spec.heads:
        return k_norm
    return lambda k: T.if_then_else(head < spec.heads, q_norm(k), k_norm(k))


class TokenSlot:
    """The place of a row's token in the cache.

    Constructing it emits code, so it is constructed at use.
    """

    def __init__(
        self, spec: RopeAppendSpec, pages: Any, rows: BatchRows, row: Any, position: Any
    ) -> None:
        self.pages = pages
        self.page = e.let(rows.page(rows.first(row), position // spec.page_size))
        self.token = e.let(position % spec.page_size)

    def place(self, kv_head: Any) -> Place:
        """Return the words of a KV head, in a cache of integers."""
        return Place(self.pages, self.page, kv_head, self.token)

    def store(self, which: int, kv_head: Any, k: Any, value: Any) -> None:
        """Emit the store of element k of the key (0) or value (1), if the pages have that plane."""
        if which >= int(self.pages.shape[1]):
            T.evaluate(0)
            return
        index = element(self.pages, self.page, which, kv_head, self.token, k)
        e.store(self.pages, value, *index)


def normed(
    spec: RopeAppendSpec,
    loads: Sequence[Load],
    weights: Sequence[Load | None],
    thread: Any,
    limits: GpuLimits,
) -> list[Load]:
    """Emit the norms of heads, computed by `threads_of` threads.

    Return loads of normalized elements.

    With `norm_last` the loads omit the norm weights, which `rotated` applies; values have no norm
    weights.
    """
    assert spec.qk_norm_eps is not None
    threads, eps = threads_of(limits), spec.qk_norm_eps
    inverses = inverses_rms(loads, spec.head_dim, thread, threads, eps, limits)

    def normed_load(load: Load, weight: Load | None, inverse: Any) -> Load:
        if weight is None or spec.norm_last:
            return lambda k: load(k) * inverse
        return lambda k: load(k) * inverse * weight(k)

    return [normed_load(*each) for each in zip(loads, weights, inverses, strict=True)]


def rotated(
    spec: RopeAppendSpec,
    loads: Sequence[Load],
    stores: Sequence[Store],
    k: Any,
    turn: Load,
    weights: Sequence[Load | None] = (),
) -> None:
    """Emit element k of each head after the rotation; elements beyond `rotary_dim` are unchanged.

    `turn` gives the position of each frequency, see `turns`. `weights` are the heads' norm weights;
    they are applied here only with `norm_last`.
    """
    half = spec.rotary_dim // 2
    if spec.norm_last:
        stores = [
            lambda k, v, store=store, weight=weight: store(k, v * weight(k))
            # `stores` is shorter, because values are not stored
            for store, weight in zip(stores, weights, strict=False)
        ]

    def rotate() -> None:
        j = e.let(e.mod(k, half))
        cos, sin = e.cos_sin(T.Cast("float32", turn(j)) * e.constant(spec.inv_freq, j))
        for load, store in zip(loads, stores, strict=True):
            other = e.let(T.if_then_else(k < half, T.float32(0) - load(j + half), load(j)))
            value = e.fma(load(k), cos, other * sin)
            store(k, e.let(value * e.number(spec.scaling)))

    def passed() -> None:
        for load, store in zip(loads, stores, strict=True):
            store(k, load(k))

    if spec.rotary_dim == spec.head_dim:
        rotate()
    elif not half:
        passed()
    else:
        e.if_else(k < spec.rotary_dim, rotate, passed)

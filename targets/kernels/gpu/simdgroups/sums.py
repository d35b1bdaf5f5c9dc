"""Sums over lanes and over a block, by shuffles: at most one barrier, where a tree takes eight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.script import tirx as T

from .. import emit as e
from .intrinsics import shuffle_xor
from .plan import LANES


def over_lanes(value: Any, lanes: int) -> Any:
    """Emit the sum over `lanes` neighbours (a power of two up to 32); all of them get it.

    The tree of additions is explicit, because the device chooses the order of `simd_sum`.
    """
    total = e.Variable(value)
    distance = lanes // 2
    while distance:
        other = e.let(shuffle_xor(total.value, distance))
        total.set(total.value + other)
        distance //= 2
    return total.value


def block_sums(values: Sequence[Any], threads: int, thread: Any) -> list[Any]:
    """Emit the sum over all threads of each value, by shuffles; all threads get the sums."""
    lanes = min(threads, LANES)
    totals = [over_lanes(value, lanes) for value in values]
    groups = threads // lanes
    if groups == 1:
        return totals
    # separate arrays, so that TVM sees that they do not overlap
    partials = [e.shared((groups,)) for _ in values]

    def keep() -> None:
        for partial, total in zip(partials, totals, strict=True):
            T.buffer_store(partial, total, [e.div(thread, lanes)])

    e.when(e.mod(thread, lanes) == 0, keep)
    e.barrier()
    sums = []
    for partial in partials:
        block_total = e.Variable(partial[0])
        for i in range(1, groups):
            block_total.set(block_total.value + partial[i])
        sums.append(block_total.value)
    e.barrier()  # a barrier before the shared memory is reused
    return sums

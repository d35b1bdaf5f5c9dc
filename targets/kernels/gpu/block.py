"""Reductions and prefix sums of uint32 over the threads of a block, with two barriers each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.script import tirx as T

from . import emit as e

_PARTIAL = 16  # threads that reduce a value together, values of which one thread sums the prefixes


class Block:
    """The shared memory of one block, and the operations of all its threads together.

    The whole block must reach each operation. `most` is the number of values that one reduction
    may have; `threads` is a power of two from 16 to 256.
    """

    def __init__(self, threads: int, thread: Any, most: int) -> None:
        self._threads, self._t = threads, thread
        # One dtype for all arrays: TVM overlays arrays, and not all languages can cast them.
        self._given = e.shared((most * threads,), "uint32")
        self._left = e.shared((most * _PARTIAL,), "uint32")
        # not in place: TVM would add a barrier between these stores and loads
        self._prefixes = e.shared((threads,), "uint32")

    def reduced(self, values: Sequence[Any], op: Callable[[Any, Any], Any]) -> list[Any]:
        """Emit the reduction of each uint32, in a fixed order; all threads get the results."""
        threads = self._threads
        for i, value in enumerate(values):
            T.buffer_store(self._given, value, [i * threads + self._t])
        e.barrier()

        def some() -> None:
            first = e.let(e.div(self._t, _PARTIAL) * threads + e.mod(self._t, _PARTIAL))
            left = e.Variable(self._given[first])
            with T.serial(threads // _PARTIAL - 1) as k:
                left.set(op(left.value, self._given[first + (k + 1) * _PARTIAL]))
            T.buffer_store(self._left, left.value, [self._t])

        e.when(self._t < len(values) * _PARTIAL, some)
        e.barrier()
        results = []
        for i in range(len(values)):
            first, *others = self._vectors(i * _PARTIAL, _PARTIAL)
            result = e.Variable(first)
            for other in others:
                result.set(op(result.value, other))
            results.append(e.let(result.value))
        return results

    def places(self, count: Any) -> tuple[Any, Any]:
        """Emit the sums of `count` over the threads before this one, and over all threads."""
        T.buffer_store(self._given, count, [self._t])
        e.barrier()

        def prefixes() -> None:
            total = e.Variable(T.uint32(0))
            with T.serial(_PARTIAL) as k:
                at = e.let(self._t * _PARTIAL + k)
                T.buffer_store(self._prefixes, total.value, [at])
                total.set(total.value + self._given[at])
            T.buffer_store(self._left, total.value, [self._t])

        runs = self._threads // _PARTIAL
        e.when(self._t < runs, prefixes)
        e.barrier()
        place, total = e.Variable(self._prefixes[self._t]), e.Variable(T.uint32(0))
        for k, left in enumerate(self._vectors(0, runs)):
            before = e.div(self._t, _PARTIAL) > k
            place.set(place.value + T.Select(before, left, T.uint32(0)))
            total.set(total.value + left)
        return e.let(place.value), e.let(total.value)

    def _vectors(self, first: int, count: int) -> list[Any]:
        """Emit the loads of partial results, four at a time."""
        loaded = (e.vector(self._left, first + k) for k in range(0, count, 4))
        return [value for vector in loaded for value in vector]

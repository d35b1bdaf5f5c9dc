"""The K largest elements of a row of float32, in one block, from the maxima of the row's groups.

The K-th largest of the groups' maxima is a threshold that at least K elements of the row reach, and
seldom many more. The block collects these from the groups whose maxima reach it, and ranks them by
comparing all with all. Memory is read twice, the second time at addresses that depend on the first:
the maxima, which stay in registers, and the elements of about K groups.

Values are compared as integers of the same order (`key_of`), so that neither fast math nor the
order of threads changes the result, and NaN and infinities are recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import CandidatesSpec

from . import emit as e
from .block import Block
from .limits import GpuLimits

COLLECTED = 512  # capacity in shared memory for elements above the threshold, and for their groups
SIGN = 1 << 31
_SPLIT = 8  # ratio of the groups that a value stands for in one round of the search and in the next
_REGISTERS = 64  # most maxima that a thread keeps in registers
_MOST = 2**32 - 1
_WIDTH = 4  # elements of a vector load


@dataclass(frozen=True, slots=True)
class SearchShape:
    """Division of a row: element (p * group + j) * threads + t is number j of thread t, part p."""

    vocab: int
    count: int  # number of candidates, K
    threads: int
    group: int  # elements of one thread in a part

    @property
    def parts(self) -> int:
        """Return the number of blocks that share a row in the first launch."""
        return -(-self.vocab // (self.threads * self.group))

    @property
    def bests(self) -> int:
        """Return the number of groups of a row, some perhaps empty."""
        return self.parts * self.threads

    @property
    def widths(self) -> list[int]:
        """Return of how many parts the values of each round of the search are maxima."""
        widths = [1]
        while widths[0] < self.parts:
            widths.insert(0, widths[0] * _SPLIT)
        return widths

    @property
    def listed(self) -> int:
        """Return the most values that a round lists."""
        return max(self.threads, _SPLIT * self.count)

    @classmethod
    def of(cls, spec: CandidatesSpec, limits: GpuLimits) -> SearchShape:
        """Return the shape with the largest groups of which there are eight per candidate.

        With eight groups per candidate, few groups contain two candidates.
        """
        threads = min(256, limits.threads_per_block)
        group = 16
        while group > 1 and spec.vocab < 8 * spec.count * group:
            group //= 2
        return cls(spec.vocab, spec.count, threads, group)


def u32(value: int) -> Any:
    """Return a uint32 constant."""
    return T.uint32(value)


def key_of(bits: Any) -> Any:
    """Convert the bits of a float32 to an integer of the same order, at least 1.

    Both zeros become 2^31; NaN are ordered beyond the infinities.
    """
    magnitude = T.bitwise_and(bits, u32(SIGN - 1))
    return T.Select(bits > u32(SIGN - 1), u32(SIGN) - magnitude, u32(SIGN) + magnitude)


def bits_of(key: Any) -> Any:
    """Convert a key back to the bits of its float32: the inverse of `key_of`."""
    return T.Select(key < u32(SIGN), u32(SIGN) - key + u32(SIGN), key - u32(SIGN))


class Largest:
    """Emits the search in one block, whose every thread must reach each method.

    `logits(i)` is element i of the row, float32, `maximum(part)` the maximum of this thread's group
    of a part, a key; 0 if it is empty.
    """

    def __init__(
        self,
        shape: SearchShape,
        block: Block,
        thread: Any,
        logits: Callable[[Any], Any],
        maximum: Callable[[Any], Any],
    ) -> None:
        self._shape, self._block, self._t, self._logits = shape, block, thread, logits
        self._stored = maximum
        self._own: Any = None
        if shape.parts <= _REGISTERS:
            # The loads begin here, before any barrier.
            self._own = e.private(shape.parts, "uint32")
            with T.unroll(shape.parts) as part:
                T.buffer_store(self._own, maximum(part), [part])

    def collect(self) -> Any:
        """Emit the search and the collection of the elements; return their number.

        If it is above COLLECTED, not all were collected, and the number may be too large.
        """
        threshold = self._threshold()
        groups = e.shared((COLLECTED,), "uint32")

        def store(place: Any, part: Any, _: Any) -> None:
            group = T.Cast("uint32", part * self._shape.threads + self._t)

            def fits() -> None:
                T.buffer_store(groups, group, [T.Cast("int32", place)])

            e.when(place < u32(COLLECTED), fits)

        number = self._listed(1, lambda best: best >= threshold, store)
        e.barrier()
        total = self._elements(groups, number, threshold)
        # each group has an element that reaches the threshold, so `number` is at most the total
        return e.let(T.Select(number > u32(COLLECTED), number, total))

    def ranked(self, collected: Any, emit: Callable[[Any, Any, Any], None]) -> None:
        """Emit `emit(rank, key, index)`, all uint32, for each of the `collected` elements.

        Of equal elements, the one with the lower index is first.
        """

        def one(i: Any) -> None:
            key, index = e.let(self._keys[i]), e.let(self._ids[i])
            rank = e.Variable(u32(0))
            with T.serial(e.div(T.Cast("int32", collected) + _WIDTH - 1, _WIDTH)) as k:
                keys, ids = (e.vector(x, k * _WIDTH) for x in (self._keys, self._ids))
                for other, other_index in zip(keys, ids, strict=True):
                    before = T.Or(other > key, T.And(other == key, other_index < index))
                    rank.set(rank.value + T.Cast("uint32", before))
            emit(rank.value, key, index)

        def perhaps(i: Any) -> None:
            e.when(T.Cast("uint32", i) < collected, lambda: one(i))

        e.over(COLLECTED, self._shape.threads, self._t, perhaps)

    def _threshold(self) -> Any:
        """Emit the K-th largest of the groups' maxima; 1, not above any key, if there are fewer.

        The K-th largest of maxima of several groups each is a lower bound. Each round takes maxima
        of fewer groups than the round before. Of those before, fewer than K are above the bound,
        so of the new ones fewer than K * _SPLIT. These are listed. The K-th largest of the list is
        the new bound; the bound remains if the list is shorter, because others equal it.
        """
        threshold = e.Variable(u32(1))
        values = e.shared((self._shape.listed + _WIDTH,), "uint32")

        def store(place: Any, _: Any, best: Any) -> None:
            T.buffer_store(values, best, [T.Cast("int32", place)])

        for width in self._shape.widths:
            end = e.let(self._listed(width, lambda best: best > threshold.value, store))
            self._pad(values, end)
            e.barrier()
            threshold.set(self._kth(values, T.Cast("int32", end), threshold.value))
        return e.let(threshold.value)

    def _kth(self, values: Any, end: Any, otherwise: Any) -> Any:
        """Emit the K-th largest of `end` values; `otherwise` if there are fewer."""
        count = self._shape.count
        kth = e.Variable(u32(_MOST))

        def one(i: Any) -> None:
            key, greater = e.let(values[i]), e.Variable(u32(0))
            with T.serial(e.div(end + _WIDTH - 1, _WIDTH)) as k:
                for other in e.vector(values, k * _WIDTH):
                    greater.set(greater.value + T.Cast("uint32", other > key))
            kth.set(T.Select(greater.value < u32(count), T.min(kth.value, key), kth.value))

        def perhaps(i: Any) -> None:
            e.when(i < end, lambda: one(i))

        e.over(self._shape.listed, self._shape.threads, self._t, perhaps)
        (least,) = self._block.reduced([kth.value], T.min)
        return T.Select(end >= count, least, otherwise)

    def _listed(
        self, width: int, chosen: Callable[[Any], Any], store: Callable[[Any, Any, Any], None]
    ) -> Any:
        """Emit `store(place, part, maximum)` for the maxima of `width` parts that are `chosen`.

        `part` is the first of the parts; places count from 0 over the block. Return the number of
        all places. No barrier follows.
        """
        own = e.Variable(u32(0))
        self._maxima(width, lambda _, best: own.set(own.value + T.Cast("uint32", chosen(best))))
        first, total = self._block.places(own.value)
        place = e.Variable(first)

        def keep(part: Any, best: Any) -> None:
            def one() -> None:
                store(place.value, part, best)
                place.set(place.value + u32(1))

            e.when(chosen(best), one)

        self._maxima(width, keep)
        return total

    def _maxima(self, width: int, emit: Callable[[Any, Any], None]) -> None:
        """Emit `emit(part, maximum)` for each `width` parts of this thread, from `part` on."""
        parts = self._shape.parts
        loop = T.serial if self._own is None else T.unroll
        with loop(-(-parts // width)) as run:
            best = e.Variable(u32(0))
            with loop(min(width, parts)) as i:
                part = T.min(run * width + i, parts - 1)  # the last again, beyond the end
                value = self._stored(part) if self._own is None else self._own[part]
                best.set(T.max(best.value, value))
            emit(run * width, best.value)

    def _elements(self, groups: Any, number: Any, threshold: Any) -> Any:
        """Emit the collection of the elements of `number` groups; return the elements' number.

        Each thread loads its groups once, into registers, and all of a group at a time.
        """
        shape = self._shape
        rounds = -(-COLLECTED // shape.threads)
        keys = e.private(rounds * shape.group, "uint32")
        own = e.Variable(u32(0))
        firsts = [e.Variable(T.int32(0)) for _ in range(rounds)]  # each group's first element

        def load(i: int) -> None:
            group = e.let(T.Cast("int32", groups[i * shape.threads + self._t]))
            column = e.mod(group, shape.threads)
            firsts[i].set((group - column) * shape.group + column)
            with T.unroll(shape.group) as j:
                index = firsts[i].value + j * shape.threads
                value = self._logits(T.min(index, shape.vocab - 1))
                T.buffer_store(keys, T.reinterpret("uint32", value), [i * shape.group + j])
            with T.unroll(shape.group) as j:
                at = i * shape.group + j
                exists = firsts[i].value + j * shape.threads < shape.vocab
                T.buffer_store(keys, T.Select(exists, key_of(keys[at]), u32(0)), [at])
                own.set(own.value + T.Cast("uint32", keys[at] >= threshold))

        with T.unroll(rounds * shape.group) as j:
            T.buffer_store(keys, u32(0), [j])
        for i in range(rounds):
            here = T.Cast("uint32", i * shape.threads + self._t) < number
            e.when(here, lambda i=i: load(i))
        start, total = self._block.places(own.value)
        place = e.Variable(start)
        self._keys, self._ids = (e.shared((COLLECTED + _WIDTH,), "uint32") for _ in range(2))

        def keep(key: Any, index: Any) -> None:
            def fits() -> None:
                at = e.let(T.Cast("int32", place.value))
                T.buffer_store(self._keys, key, [at])
                T.buffer_store(self._ids, T.Cast("uint32", index), [at])

            e.when(place.value < u32(COLLECTED), fits)
            place.set(place.value + u32(1))

        for i in range(rounds):
            with T.unroll(shape.group) as j:
                key, index = keys[i * shape.group + j], firsts[i].value + j * shape.threads
                e.when(key >= threshold, lambda key=key, index=index: keep(key, index))
        self._pad(self._keys, e.let(T.min(total, u32(COLLECTED))))
        e.barrier()
        return total

    def _pad(self, values: Any, end: Any) -> None:
        """Emit the stores of zeros, less than any key, behind `end` for loads of vectors."""

        def zero() -> None:
            T.buffer_store(values, u32(0), [T.Cast("int32", end) + self._t])

        e.when(self._t < _WIDTH - 1, zero)

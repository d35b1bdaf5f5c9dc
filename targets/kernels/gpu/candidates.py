"""Most likely tokens and sums of a row of logits, small enough to read back for sampling.

Two launches for any vocabulary. The first has a block for each part of a row: it stores the maximum
of each thread's elements (a group), and of the part its maximum, minimum and sums of exponentials
relative to the maximum. The second has a block for each row. It finds the K-th largest of the
groups' maxima by a radix select, two bits at a time: a threshold that at least K elements of the
row reach, and seldom many more. It collects these, and ranks them by comparing all with all.

Values are compared as integers of the same order (`_key`), so that neither fast math nor the order
of threads changes the candidates, and NaN and infinities are recognised. A row's bits depend on the
row alone.

A row of the result, uint32 [2 K + 4]: ids by rank, equal logits by id; the bits of their logits (-0
as 0); their number, 0 if too many equal ones could not be collected; the bits of the sum of exp(x -
largest), and of the sum of exp((x - largest) * scale), where the caller gives each row's scale in
(0, 1000]; 1 if the row can be sampled from (no NaN or +inf, not all -inf), else 0.

RELATIVE_ERROR bounds both sums. With n elements the mean of |x - largest| under the distribution is
its entropy less the logarithm of the sum, so at most ln n, below 12.5 for n <= 2^18. With x -
largest = a + b, every API computes the factors exp(a) and exp(b) within 3 + 2 |a| units in the last
place, 2^-23, and rounds a in two steps: 6 + 2 * 12.5 units and 2 * 12.5 * 2^-23, together 6.7e-6.
At most 80 successive additions, each within 2^-24, add 4.8e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import CandidatesSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .limits import GpuLimits

RELATIVE_ERROR = 2e-5
# bound of the sums' relative error where a compiler may rewrite (x - largest) * scale
FAST_MATH_ERROR = 1e-4
MOST_VOCABULARY = 2**18  # largest vocabulary for which the error bounds are valid
TAIL = 4  # numbers of a result row after the candidates

_COLLECTED = 512  # capacity in shared memory for elements above the threshold
_PARTIAL = 16  # threads that reduce a value together
_DIGIT = 2  # bits of the threshold that one step of the radix select finds
_SIGN = 1 << 31
_INFINITY = 0x7F800000  # bits of a float32 infinity
_FLOOR = -100.0  # lower limit of exponents: smaller ones contribute nothing; it replaces -infinity


@dataclass(frozen=True, slots=True)
class _Shape:
    """Division of a row: element (p * group + j) * threads + t is number j of thread t, part p."""

    vocab: int
    count: int  # number of candidates, K
    threads: int
    group: int  # elements of one thread in a part

    @property
    def parts(self) -> int:
        return -(-self.vocab // (self.threads * self.group))

    @property
    def bests(self) -> int:
        """Return the number of groups of a row, some perhaps empty."""
        return self.parts * self.threads

    @property
    def scratch(self) -> int:
        """Return the size of a row's scratch memory in uint32.

        It holds the groups' maxima, and each part's maximum, minimum and two sums.
        """
        return self.bests + 4 * self.parts

    @classmethod
    def of(cls, spec: CandidatesSpec, limits: GpuLimits) -> _Shape:
        """Return the shape with the largest groups of which there are eight per candidate.

        With eight groups per candidate, few groups contain two candidates.
        """
        threads = min(256, limits.threads_per_block)
        group = 16
        while group > 1 and spec.vocab < 8 * spec.count * group:
            group //= 2
        return cls(spec.vocab, spec.count, threads, group)


def candidates(spec: CandidatesSpec, limits: GpuLimits) -> FusedKernel:
    """Return the candidates kernel.

    (logits f32 [m, vocab], scales f32 [m], result u32 [m, 2 K + 4], scratch)
    """
    shape = _Shape.of(spec, limits)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        e.launch(
            (shape.parts, sizes["m"]),
            shape.threads,
            lambda part, row, t: _Block(shape, b, row, t).part(part),
        )
        e.launch((sizes["m"],), shape.threads, lambda row, t: _Block(shape, b, row, t).row())

    func: PrimFunc = e.prim_func(
        [
            ("logits", ("m", spec.vocab), "float32"),
            ("scales", ("m",), "float32"),
            ("result", ("m", 2 * spec.count + TAIL), "uint32"),
            ("scratch", ("m", shape.scratch), "uint32"),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=((("m", shape.scratch), "uint32"),))


def _u32(value: int) -> Any:
    return T.uint32(value)


def _key(bits: Any) -> Any:
    """Convert the bits of a float32 to an integer of the same order.

    Both zeros become 2^31; NaN are ordered beyond the infinities.
    """
    magnitude = T.bitwise_and(bits, _u32(_SIGN - 1))
    return T.Select(bits > _u32(_SIGN - 1), _u32(_SIGN) - magnitude, _u32(_SIGN) + magnitude)


def _bits(key: Any) -> Any:
    """Convert a key back to the bits of its float32: the inverse of `_key`."""
    return T.Select(key < _u32(_SIGN), _u32(_SIGN) - key + _u32(_SIGN), key - _u32(_SIGN))


def _float(bits: Any) -> Any:
    return T.reinterpret("float32", bits)


class _Block:
    """Emits the work of one block of either launch."""

    def __init__(self, shape: _Shape, buffers: dict[str, Any], row: Any, thread: Any) -> None:
        self.shape, self.b, self.r, self.t = shape, buffers, row, thread
        # Shared memory for three numbers per thread and for partial results. All arrays have one
        # dtype, because TVM overlays arrays, and not all languages can cast them.
        digits = 2**_DIGIT - 1
        self._given = e.shared((digits * shape.threads,), "uint32")
        self._left = e.shared((digits * _PARTIAL,), "uint32")

    # Methods of the first launch follow.

    def part(self, part: Any) -> None:
        """Emit the first launch's work for one part of a row."""
        best, least = e.Variable(_u32(0)), e.Variable(_u32(2**32 - 1))

        def seen(_: Any, index: Any) -> None:
            key = e.let(self._key_of(index))
            best.set(T.max(best.value, key))
            least.set(T.min(least.value, key))

        self._group(part, seen)
        T.buffer_store(self.b["scratch"], best.value, [self.r, part * self.shape.threads + self.t])
        (largest,) = self._reduced([best.value], T.max)
        (lowest,) = self._reduced([least.value], T.min)
        sums = self._exponentials(part, largest)

        def store() -> None:
            for i, value in enumerate((largest, lowest, *sums)):
                T.buffer_store(self.b["scratch"], value, [self.r, self._of_part(part, i)])

        e.when(self.t == 0, store)

    def _exponentials(self, part: Any, largest: Any) -> list[Any]:
        """Emit two sums of exp relative to the part's maximum; return their bits.

        One sum is at scale 1, the other at the row's scale.
        """
        top = e.let(_finite(largest))
        scale = e.let(self.b["scales"][self.r])
        sums = [e.Variable(T.float32(0)) for _ in range(2)]

        def add(_: Any, index: Any) -> None:
            distance = e.let(self.b["logits"][self.r, index] - top)
            for variable, exponent in zip(sums, (distance, distance * scale), strict=True):
                variable.set(variable.value + _exp(exponent))

        self._group(part, add)
        return self._sums(sums)

    # Methods of the second launch follow.

    def row(self) -> None:
        """Emit the second launch's work for one row."""
        largest, lowest, sums = self._combined()
        threshold = self._threshold()
        total = self._collect(threshold)
        shape, result = self.shape, self.b["result"]
        held = e.let(T.min(total, _u32(_COLLECTED)))
        found = e.let(T.Select(total > held, _u32(0), T.min(total, _u32(shape.count))))
        self._rank(held, found)

        def clear(i: Any) -> None:
            def zero() -> None:
                T.buffer_store(result, _u32(0), [self.r, i])
                T.buffer_store(result, _u32(0), [self.r, i + shape.count])

            e.when(T.Cast("uint32", i) >= found, zero)

        e.over(shape.count, shape.threads, self.t, clear)
        valid = T.And(
            T.And(largest < _u32(_SIGN + _INFINITY), largest > _u32(_SIGN - _INFINITY)),
            lowest >= _u32(_SIGN - _INFINITY),
        )
        numbers = (found, *sums, T.Cast("uint32", valid))

        def store() -> None:
            for i, value in enumerate(numbers):
                T.buffer_store(result, value, [self.r, 2 * shape.count + i])

        e.when(self.t == 0, store)

    def _combined(self) -> tuple[Any, Any, list[Any]]:
        """Emit the largest and least key of the row, and the bits of its two sums."""
        parts, threads = self.shape.parts, self.shape.threads
        best, least = e.Variable(_u32(0)), e.Variable(_u32(2**32 - 1))

        def seen(part: Any) -> None:
            best.set(T.max(best.value, self._part_number(part, 0)))
            least.set(T.min(least.value, self._part_number(part, 1)))

        e.over(parts, threads, self.t, seen)
        (largest,) = self._reduced([best.value], T.max)
        (lowest,) = self._reduced([least.value], T.min)
        top, scale = e.let(_finite(largest)), e.let(self.b["scales"][self.r])
        sums = [e.Variable(T.float32(0)) for _ in range(2)]

        def add(part: Any) -> None:
            distance = e.let(_finite(self._part_number(part, 0)) - top)
            for i, exponent in enumerate((distance, distance * scale)):
                own = _float(self._part_number(part, 2 + i))
                sums[i].set(sums[i].value + own * _exp(exponent))

        e.over(parts, threads, self.t, add)
        return largest, lowest, self._sums(sums)

    def _threshold(self) -> Any:
        """Emit the K-th largest of the groups' maxima; 0 if there are fewer than K groups."""
        shape = self.shape
        found = e.Variable(_u32(0))
        counts = e.private(2**_DIGIT - 1, "uint32")
        with T.serial(32 // _DIGIT) as i:
            shift = e.let(T.Cast("uint32", 32 - _DIGIT - _DIGIT * i))
            steps = [
                e.let(found.value + T.shift_left(_u32(digit), shift))
                for digit in range(1, 2**_DIGIT)
            ]
            for k in range(len(steps)):
                T.buffer_store(counts, _u32(0), [k])
            with T.serial(shape.parts) as part:
                best = e.let(self._best(part))
                for k, step in enumerate(steps):
                    T.buffer_store(counts, counts[k] + T.Cast("uint32", best >= step), [k])
            reached = self._reduced([counts[k] for k in range(len(steps))], lambda a, b: a + b)
            for step, count in zip(steps, reached, strict=True):
                found.set(T.Select(count >= _u32(shape.count), step, found.value))
        return e.let(found.value)

    def _collect(self, threshold: Any) -> Any:
        """Emit the collection of elements from the threshold on, in shared memory.

        Return their number.
        """
        threads = self.shape.threads
        own = e.Variable(_u32(0))
        self._above_threshold(threshold, lambda _key, _index: own.set(own.value + _u32(1)))
        T.buffer_store(self._given, own.value, [self.t])
        e.barrier()
        total, place = e.Variable(_u32(0)), e.Variable(_u32(0))
        with T.serial(threads) as k:
            count = e.let(self._given[k])
            place.set(place.value + T.Select(k < self.t, count, _u32(0)))
            total.set(total.value + count)
        self._keys = e.shared((_COLLECTED,), "uint32")
        self._ids = e.shared((_COLLECTED,), "uint32")

        def keep(key: Any, index: Any) -> None:
            def store() -> None:
                at = e.let(T.Cast("int32", place.value))
                T.buffer_store(self._keys, key, [at])
                T.buffer_store(self._ids, T.Cast("uint32", index), [at])

            e.when(place.value < _u32(_COLLECTED), store)
            place.set(place.value + _u32(1))

        self._above_threshold(threshold, keep)
        e.barrier()
        return e.let(total.value)

    def _rank(self, held: Any, found: Any) -> None:
        """Emit the stores of the collected elements into the result, by rank."""
        result, count = self.b["result"], self.shape.count

        def one(i: Any) -> None:
            key, index = e.let(self._keys[i]), e.let(self._ids[i])
            rank = e.Variable(_u32(0))
            with T.serial(T.Cast("int32", held)) as k:
                other = e.let(self._keys[k])
                before = T.Or(other > key, T.And(other == key, self._ids[k] < index))
                rank.set(rank.value + T.Cast("uint32", before))

            def store() -> None:
                at = e.let(T.Cast("int32", rank.value))
                T.buffer_store(result, index, [self.r, at])
                T.buffer_store(result, _bits(key), [self.r, at + count])

            e.when(rank.value < found, store)

        def perhaps(i: Any) -> None:
            e.when(T.Cast("uint32", i) < held, lambda: one(i))

        e.over(_COLLECTED, self.shape.threads, self.t, perhaps)

    # Methods of both launches follow.

    def _group(self, part: Any, emit: Callable[[Any, Any], None]) -> None:
        """Emit `emit(j, index)` for each element of this thread's group."""
        shape = self.shape
        with T.serial(shape.group) as j:
            index = e.let((part * shape.group + j) * shape.threads + self.t)
            if shape.vocab % (shape.threads * shape.group):
                e.when(index < shape.vocab, lambda: emit(j, index))
            else:
                emit(j, index)

    def _above_threshold(self, threshold: Any, emit: Callable[[Any, Any], None]) -> None:
        """Emit `emit(key, index)` for elements of this thread's groups that reach the threshold."""

        def element(_: Any, index: Any) -> None:
            key = e.let(self._key_of(index))
            e.when(key >= threshold, lambda: emit(key, index))

        with T.serial(self.shape.parts) as part:
            e.when(self._best(part) >= threshold, lambda: self._group(part, element))

    def _reduced(self, values: Sequence[Any], op: Callable[[Any, Any], Any]) -> list[Any]:
        """Emit the reduction of each uint32 over the block; all threads get the results."""
        threads = self.shape.threads
        for i, value in enumerate(values):
            T.buffer_store(self._given, value, [i * threads + self.t])
        e.barrier()

        def some() -> None:
            first = e.let(e.div(self.t, _PARTIAL) * threads + e.mod(self.t, _PARTIAL))
            left = e.Variable(self._given[first])
            with T.serial(threads // _PARTIAL - 1) as k:
                left.set(op(left.value, self._given[first + (k + 1) * _PARTIAL]))
            T.buffer_store(self._left, left.value, [self.t])

        e.when(self.t < len(values) * _PARTIAL, some)
        e.barrier()
        results = [e.Variable(self._left[i * _PARTIAL]) for i in range(len(values))]
        with T.serial(_PARTIAL - 1) as k:
            for i, result in enumerate(results):
                result.set(op(result.value, self._left[i * _PARTIAL + k + 1]))
        return [e.let(result.value) for result in results]

    def _sums(self, values: Sequence[e.Variable]) -> list[Any]:
        """Emit the sum of each float32 over the block, in a fixed order.

        Return the bits of the sums.
        """

        def add(a: Any, b: Any) -> Any:
            return T.reinterpret("uint32", _float(a) + _float(b))

        return self._reduced([T.reinterpret("uint32", v.value) for v in values], add)

    def _key_of(self, index: Any) -> Any:
        return _key(e.let(T.reinterpret("uint32", self.b["logits"][self.r, index])))

    def _best(self, part: Any) -> Any:
        return self.b["scratch"][self.r, part * self.shape.threads + self.t]

    def _of_part(self, part: Any, number: int) -> Any:
        return self.shape.bests + part * 4 + number

    def _part_number(self, part: Any, number: int) -> Any:
        return self.b["scratch"][self.r, self._of_part(part, number)]


def _finite(key: Any) -> Any:
    """Convert a key to its float, or to the least finite float: -inf - -inf would be NaN."""
    return T.max(_float(_bits(key)), e.number(-3.4e38))


def _exp(exponent: Any) -> Any:
    return T.exp(T.max(exponent, e.number(_FLOOR)))

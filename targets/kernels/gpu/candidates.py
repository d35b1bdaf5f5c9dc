"""Most likely tokens and sums of a row of logits, small enough to read back for sampling.

Two launches for any vocabulary. The first has a block for each part of a row: it stores the maximum
of each thread's elements (a group), and of the part its maximum, minimum and sums of exponentials
relative to the maximum. The second has a block for each row, which finds the K largest elements
from the groups' maxima (largest.py). A row's bits depend on the row alone.

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
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import CandidatesSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .block import Block
from .largest import COLLECTED, SIGN, Largest, SearchShape, bits_of, key_of, u32
from .limits import GpuLimits

RELATIVE_ERROR = 2e-5
# bound of the sums' relative error where a compiler may rewrite (x - largest) * scale
FAST_MATH_ERROR = 1e-4
MOST_VOCABULARY = 2**18  # largest vocabulary for which the error bounds are valid
TAIL = 4  # numbers of a result row after the candidates

_INFINITY = 0x7F800000  # bits of a float32 infinity
_FLOOR = -100.0  # lower limit of exponents: smaller ones contribute nothing; it replaces -infinity


def candidates(spec: CandidatesSpec, limits: GpuLimits) -> FusedKernel:
    """Return the candidates kernel.

    (logits f32 [m, vocab], scales f32 [m], result u32 [m, 2 K + 4], scratch)
    """
    shape = SearchShape.of(spec, limits)
    scratch = _scratch(shape)

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
            ("scratch", ("m", scratch), "uint32"),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=((("m", scratch), "uint32"),))


def _scratch(shape: SearchShape) -> int:
    """Return the size of a row's scratch memory in uint32.

    It holds the groups' maxima, and each part's maximum, minimum and two sums.
    """
    return shape.bests + 4 * shape.parts


def _float(bits: Any) -> Any:
    return T.reinterpret("float32", bits)


class _Block:
    """Emits the work of one block of either launch."""

    def __init__(self, shape: SearchShape, buffers: dict[str, Any], row: Any, thread: Any) -> None:
        self.shape, self.b, self.r, self.t = shape, buffers, row, thread
        self._block = Block(shape.threads, thread, 2)

    # Methods of the first launch follow.

    def part(self, part: Any) -> None:
        """Emit the first launch's work for one part of a row."""
        best, least = e.Variable(u32(0)), e.Variable(u32(2**32 - 1))

        def seen(_: Any, index: Any) -> None:
            key = e.let(key_of(e.let(T.reinterpret("uint32", self.b["logits"][self.r, index]))))
            best.set(T.max(best.value, key))
            least.set(T.min(least.value, key))

        self._group(part, seen)
        T.buffer_store(self.b["scratch"], best.value, [self.r, part * self.shape.threads + self.t])
        largest, lowest = self._range(best.value, least.value)
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
        shape, result = self.shape, self.b["result"]
        elements = Largest(
            shape,
            self._block,
            self.t,
            lambda index: self.b["logits"][self.r, index],
            lambda part: self.b["scratch"][self.r, part * shape.threads + self.t],
        )
        largest, lowest, sums = self._combined()
        total = elements.collect()
        collected = e.let(T.min(total, u32(COLLECTED)))
        candidate_count = e.let(T.Select(total > collected, u32(0), T.min(total, u32(shape.count))))

        def store(rank: Any, key: Any, index: Any) -> None:
            def one() -> None:
                at = e.let(T.Cast("int32", rank))
                T.buffer_store(result, index, [self.r, at])
                T.buffer_store(result, bits_of(key), [self.r, at + shape.count])

            e.when(rank < candidate_count, one)

        elements.ranked(collected, store)

        def clear(i: Any) -> None:
            def zero() -> None:
                T.buffer_store(result, u32(0), [self.r, i])
                T.buffer_store(result, u32(0), [self.r, i + shape.count])

            e.when(T.Cast("uint32", i) >= candidate_count, zero)

        e.over(shape.count, shape.threads, self.t, clear)
        valid = T.And(
            T.And(largest < u32(SIGN + _INFINITY), largest > u32(SIGN - _INFINITY)),
            lowest >= u32(SIGN - _INFINITY),
        )
        numbers = (candidate_count, *sums, T.Cast("uint32", valid))

        def store_numbers() -> None:
            for i, value in enumerate(numbers):
                T.buffer_store(result, value, [self.r, 2 * shape.count + i])

        e.when(self.t == 0, store_numbers)

    def _combined(self) -> tuple[Any, Any, list[Any]]:
        """Emit the largest and least key of the row, and the bits of its two sums."""
        parts, threads = self.shape.parts, self.shape.threads
        scale = e.let(self.b["scales"][self.r])
        best, least = e.Variable(u32(0)), e.Variable(u32(2**32 - 1))

        def seen(part: Any) -> None:
            best.set(T.max(best.value, self._part_number(part, 0)))
            least.set(T.min(least.value, self._part_number(part, 1)))

        e.over(parts, threads, self.t, seen)
        largest, lowest = self._range(best.value, least.value)
        top = e.let(_finite(largest))
        sums = [e.Variable(T.float32(0)) for _ in range(2)]

        def add(part: Any) -> None:
            distance = e.let(_finite(self._part_number(part, 0)) - top)
            for i, exponent in enumerate((distance, distance * scale)):
                own = _float(self._part_number(part, 2 + i))
                sums[i].set(sums[i].value + own * _exp(exponent))

        e.over(parts, threads, self.t, add)
        return largest, lowest, self._sums(sums)

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

    def _range(self, best: Any, least: Any) -> tuple[Any, Any]:
        """Emit the maximum of `best` and the minimum of `least` over the block."""
        largest, lowest = self._block.reduced([best, T.bitwise_not(least)], T.max)
        return largest, e.let(T.bitwise_not(lowest))

    def _sums(self, values: Sequence[e.Variable]) -> list[Any]:
        """Emit the sum of each float32 over the block, in a fixed order.

        Return the bits of the sums.
        """

        def add(a: Any, b: Any) -> Any:
            return T.reinterpret("uint32", _float(a) + _float(b))

        return self._block.reduced([T.reinterpret("uint32", v.value) for v in values], add)

    def _of_part(self, part: Any, number: int) -> Any:
        return self.shape.bests + part * 4 + number

    def _part_number(self, part: Any, number: int) -> Any:
        return self.b["scratch"][self.r, self._of_part(part, number)]


def _finite(key: Any) -> Any:
    """Convert a key to its float, or to the least finite float: -inf - -inf would be NaN."""
    return T.max(_float(bits_of(key)), e.number(-3.4e38))


def _exp(exponent: Any) -> Any:
    return T.exp(T.max(exponent, e.number(_FLOOR)))

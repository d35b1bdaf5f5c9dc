"""Vector expressions for CPU kernels.

Every rounding is an explicit LLVM intrinsic or a single operation: the compiler can neither
contract nor reassociate, so a value has the same bits in every variant of a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

from ..angles import COS, SIN

Expr = Any  # TVM expressions, which have no types for mypy


def let(value: Expr) -> Expr:
    """Emit the computation of `value` once, at this place; return an expression to reuse.

    The value is a buffer on the stack, which LLVM turns into a register: TVM would substitute a
    bound variable, and expressions would grow exponentially. Needs an enclosing sblock.
    """
    element, _, lanes = str(value.ty.dtype).partition("x")
    width = int(lanes or 1)
    buffer = T.sblock_alloc_buffer((width,), element)
    T.buffer_store(buffer, value, [span(0, width)])
    return buffer[span(0, width)]


def lanes_of(value: Expr) -> int:
    """Return the number of elements of a vector expression; 1 for a scalar."""
    return int(str(value.ty.dtype).partition("x")[2] or 1)


def float_type(lanes: int) -> str:
    """Return TVM's name of the float32 type with `lanes` lanes."""
    return "float32" if lanes == 1 else f"float32x{lanes}"


def int_type(lanes: int) -> str:
    """Return TVM's name of the int32 type with `lanes` lanes."""
    return "int32" if lanes == 1 else f"int32x{lanes}"


def _llvm(name: str, lanes: int, *args: Expr) -> Expr:
    suffix = "f32" if lanes == 1 else f"v{lanes}f32"
    return T.call_llvm_pure_intrin(float_type(lanes), f"llvm.{name}.{suffix}", *args)


def cast(value: Expr, element: str, lanes: int) -> Expr:
    """Convert a vector of float32 or integers to a vector of dtype `element`."""
    return value if element == "float32" else T.Cast(f"{element}x{lanes}".removesuffix("x1"), value)


def widest(elements: int) -> int:
    """Return the lanes of the widest vector, at most 16, that divides `elements`."""
    return next(lanes for lanes in (16, 8, 4, 2, 1) if elements % lanes == 0)


def splat(value: Expr, lanes: int) -> Expr:
    """Return a float32 expression (or a number) broadcast to all lanes."""
    scalar = T.float32(value) if isinstance(value, (int, float)) else value
    return scalar if lanes == 1 else T.broadcast(scalar, lanes)


def span(start: Expr, lanes: int) -> Expr:
    """Return the index of `lanes` consecutive elements from `start` on."""
    return start if lanes == 1 else T.ramp(start, 1, lanes)


def over_columns(columns: int, emit: Callable[[Expr, int], None]) -> None:
    """Emit `emit(start, lanes)` for all columns: 16 lanes at a time, then the rest one by one."""
    for lanes, first, count in (
        (16, 0, columns // 16),
        (1, columns // 16 * 16, columns % 16),
    ):
        if count:
            with T.serial(count) as i, T.sblock("columns"):
                T.reads()
                T.writes()
                emit(first + i * lanes, lanes)


L1, L2 = 3, 2  # LLVM's locality hints for a prefetch into L1 and into L2


def prefetch(address: Expr, cache: int) -> None:
    """Emit a read prefetch of the cache line at `address`; invalid addresses are ignored."""
    T.evaluate(
        T.call_llvm_intrin(
            "void",
            "llvm.prefetch.p0",
            address,
            T.int32(0),  # kind of access: read
            T.int32(cache),
            T.int32(1),  # kind of cache: data
        )
    )


def fma(a: Expr, b: Expr, c: Expr, lanes: int, fused: bool = True) -> Expr:
    """Emit a * b + c, rounded once if the machine has fused multiply-add (`fused`)."""
    return _llvm("fma", lanes, a, b, c) if fused else a * b + c


def half_to_float(value: Expr, lanes: int) -> Expr:
    """Convert float16 to float32 by integer operations; exact except for infinities and NaN.

    For machines without such an instruction, where LLVM calls a function for each element. The bits
    of a float16, shifted to their places in a float32, are the value times 2^-112.
    """

    def integer(n: int) -> Expr:
        return T.broadcast(T.int32(n), lanes)

    bits = let(T.Cast(int_type(lanes), T.reinterpret(f"int16x{lanes}", value)))
    magnitude = T.shift_left(T.bitwise_and(bits, integer(0x7FFF)), integer(13))
    positive = T.reinterpret(float_type(lanes), magnitude) * splat(2.0**112, lanes)
    # the cast sign-extends, so bit 31 is the float16's sign
    sign = T.bitwise_and(bits, integer(-(2**31)))
    return T.reinterpret(
        float_type(lanes), T.bitwise_or(T.reinterpret(int_type(lanes), positive), sign)
    )


def rint(value: Expr, lanes: int) -> Expr:
    """Round to the nearest integer, halves to even, as float32."""
    return _llvm("rint", lanes, value)


def square_root(value: Expr, lanes: int) -> Expr:
    """Emit the correctly rounded square root of float32."""
    return _llvm("sqrt", lanes, value)


def absolute(value: Expr, lanes: int) -> Expr:
    """Emit the absolute value of float32."""
    return _llvm("fabs", lanes, value)


def maximum(a: Expr, b: Expr) -> Expr:
    """Emit the larger of two values, which are read twice; NaN is not handled."""
    return T.Select(a > b, a, b)


def shuffle(vectors: list[Expr], indices: list[int]) -> Expr:
    """Return elements `indices` of the concatenated vectors."""
    return tirx.Shuffle(vectors, indices)


def fold(value: Expr, lanes: int, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """Reduce a vector to a scalar by halves: lane i is combined with lane i + half."""
    while lanes > 1:
        half, full = lanes // 2, let(value)
        low = let(shuffle([full], list(range(half))))
        high = let(shuffle([full], list(range(half, lanes))))
        value, lanes = combine(low, high), half
    return let(value)


def sum_lanes(value: Expr, lanes: int) -> Expr:
    """Emit the sum of a vector's lanes, in a fixed order."""
    return fold(value, lanes, lambda a, b: a + b)


def max_lanes(value: Expr, lanes: int) -> Expr:
    """Emit the largest element of a vector."""
    return fold(value, lanes, maximum)


# Sums of 16 vectors at once: each round adds two vectors pairwise, which halves the lanes of every
# original vector; after four rounds each has one lane.
_GROUPS = range(0, 16, 4)
_ROUNDS = (
    (  # interleaves a and b within groups of 4: a0 b0 a1 b1 | a2 b2 a3 b3
        [g + i for g in _GROUPS for i in (0, 16, 1, 17)],
        [g + i for g in _GROUPS for i in (2, 18, 3, 19)],
    ),
    (  # interleaves pairs within groups of 4: a a b b from both vectors
        [g + i for g in _GROUPS for i in (0, 1, 16, 17)],
        [g + i for g in _GROUPS for i in (2, 3, 18, 19)],
    ),
    (  # groups of 4 lanes: 0 and 1 with 2 and 3
        [*range(0, 8), *range(16, 24)],
        [*range(8, 16), *range(24, 32)],
    ),
    (  # even groups of 4 lanes with odd groups
        [b + i for b in (0, 8, 16, 24) for i in range(4)],
        [b + i for b in (4, 12, 20, 28) for i in range(4)],
    ),
)


def sum_of_each(vectors: list[Expr], lanes: int) -> Expr:
    """Emit the sums of 16 vectors of up to 16 lanes, as one vector.

    It takes 45 operations instead of 16 reductions.
    """
    if lanes < 16:
        widen = [min(i, lanes) for i in range(16)]
        zeros = [splat(0.0, lanes)] * (16 // lanes - 1)
        vectors = [shuffle([x, *zeros], widen) for x in vectors]
    vectors = [let(x) for x in vectors]
    for low, high in _ROUNDS:
        pairs = zip(vectors[0::2], vectors[1::2], strict=True)
        vectors = [let(shuffle([a, b], low) + shuffle([a, b], high)) for a, b in pairs]
    return vectors[0]


_INTERLEAVED = [i // 2 + 16 * (i % 2) for i in range(32)]


def transposed(vectors: list[Expr]) -> list[Expr]:
    """Emit the transposition of 16 vectors of 16 lanes, of any dtype, by four perfect shuffles."""
    element = str(vectors[0].ty.dtype).partition("x")[0]
    if element == "float16":  # most machines have no float16 shuffles
        vectors = [T.reinterpret("int16x16", x) for x in vectors]
    vectors = [let(x) for x in vectors]
    for _ in range(4):
        pairs = zip(vectors[:8], vectors[8:], strict=True)
        halves = (_INTERLEAVED[:16], _INTERLEAVED[16:])
        vectors = [let(shuffle([a, b], half)) for a, b in pairs for half in halves]
    return [T.reinterpret("float16x16", x) for x in vectors] if element == "float16" else vectors


def horner(x: Expr, coefficients: Sequence[float], lanes: int, fused: bool) -> Expr:
    """Emit a polynomial in `x`; the coefficient of the highest power comes first."""
    value = splat(coefficients[0], lanes)
    for c in coefficients[1:]:
        value = fma(value, x, splat(c, lanes), lanes, fused)
    return value


_LOG2_E = 1.4426950408889634
# ln 2 as a sum of two floats: the first has trailing zero bits, so that n * high is exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
# Minimax polynomial of (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2 (Cephes, expf).
_EXP = [
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
]


def exp(value: Expr, lanes: int, fused: bool = True) -> Expr:
    """Emit e^x with relative error below 2e-7; exactly 1 at 0; x is clamped to [-87.3, 88]."""
    x, low, high = let(value), splat(-87.3, lanes), splat(88.0, lanes)
    x = let(T.Select(x < low, low, T.Select(x > high, high, x)))
    n = let(rint(x * splat(_LOG2_E, lanes), lanes))
    r = fma(n, splat(-_LN2_HIGH, lanes), x, lanes, fused)
    r = let(fma(n, splat(-_LN2_LOW, lanes), r, lanes, fused))
    power = fma(horner(r, _EXP, lanes, fused), r * r, r, lanes, fused) + splat(1.0, lanes)
    shift = T.int32(23) if lanes == 1 else T.broadcast(T.int32(23), lanes)
    exponent = T.shift_left(T.Cast(int_type(lanes), n), shift)
    return let(T.reinterpret(float_type(lanes), T.reinterpret(int_type(lanes), power) + exponent))


# Minimax polynomial of (2^r - 1) / r on |r| <= 1/2, relative error below 1e-7 (Lawson's iteration).
_EXP2 = [1.326472731307149e-3, 9.671512991e-3, 5.550733585e-2, 2.402224243e-1, 6.931470037e-1]


def exp2(value: Expr, lanes: int, fused: bool = True) -> Expr:
    """Emit 2^x for x <= 127, with relative error below 2e-7.

    The result is exactly 1 at 0, and exactly 0 below -127.
    """
    x = let(value)
    x = let(maximum(x, splat(-127.0, lanes)))
    n = let(rint(x, lanes))
    r = let(x - n)
    power = fma(horner(r, _EXP2, lanes, fused), r, splat(1.0, lanes), lanes, fused)
    shift = T.int32(23) if lanes == 1 else T.broadcast(T.int32(23), lanes)
    exponent = T.shift_left(T.Cast(int_type(lanes), n), shift)
    return let(T.reinterpret(float_type(lanes), T.reinterpret(int_type(lanes), power) + exponent))


# pi / 2 as a sum of floats. With FMA all floats have full precision, because products are not
# rounded; without FMA, all but the last have at most four bits, so that products with fewer than
# 2^20 quarter turns are exact.
_HALF_PI_FUSED = (1.57079637050628662, -4.37113900018624283e-8, -1.71512451000588e-15)
_HALF_PI = (3 / 2, 9 / 128, 1 / 2048, math.pi / 2 - 3 / 2 - 9 / 128 - 1 / 2048)


def cos_sin(value: Expr, lanes: int, fused: bool = True) -> tuple[Expr, Expr]:
    """Emit cosine and sine, with absolute error below 1e-6 up to 2^20 radians."""
    x = let(value)
    k = let(rint(x * splat(0.6366197723675814, lanes), lanes))
    r = x
    for part in _HALF_PI_FUSED if fused else _HALF_PI:
        r = fma(k, splat(-part, lanes), r, lanes, fused)
    r = let(r)
    z = let(r * r)
    sine = let(fma(horner(z, SIN, lanes, fused), z * r, r, lanes, fused))
    head = fma(z, splat(-0.5, lanes), splat(1.0, lanes), lanes, fused)
    cosine = let(fma(horner(z, COS, lanes, fused), z * z, head, lanes, fused))
    quadrant = let(T.Cast(int_type(lanes), k))

    def integer(n: int) -> Expr:
        return T.int32(n) if lanes == 1 else T.broadcast(T.int32(n), lanes)

    def signed(number: Expr, turns: Expr) -> Expr:
        sign = T.shift_left(T.bitwise_and(turns, integer(2)), integer(30))
        bits = T.bitwise_xor(T.reinterpret(int_type(lanes), number), sign)
        return let(T.reinterpret(float_type(lanes), bits))

    odd = let(T.bitwise_and(quadrant, integer(1))) > integer(0)
    return (
        signed(let(T.Select(odd, sine, cosine)), quadrant + integer(1)),
        signed(let(T.Select(odd, cosine, sine)), quadrant),
    )

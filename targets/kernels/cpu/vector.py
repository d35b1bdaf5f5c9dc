"""Vector expressions that the kernels are written in.

Everything that rounds is an explicit LLVM intrinsic or a single operation: the compiler has nothing
left to contract or to reassociate, so a value has the same bits in every variant of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.script import tirx as T

Expr = Any  # of TVM, which has no types of its own for mypy


def let(value: Expr, body: Callable[[Expr], Expr]) -> Expr:
    """Compute `value` once and use it as often as `body` likes."""
    var = tirx.Var("v", value.ty if hasattr(value, "ty") else value.dtype)
    return tirx.Let(var, value, body(var))


def float_type(lanes: int) -> str:
    """TVM's name of a float32 vector."""
    return "float32" if lanes == 1 else f"float32x{lanes}"


def int_type(lanes: int) -> str:
    """TVM's name of an int32 vector."""
    return "int32" if lanes == 1 else f"int32x{lanes}"


def _llvm(name: str, lanes: int, *args: Expr) -> Expr:
    suffix = "f32" if lanes == 1 else f"v{lanes}f32"
    return T.call_llvm_pure_intrin(float_type(lanes), f"llvm.{name}.{suffix}", *args)


def splat(value: Expr, lanes: int) -> Expr:
    """A float32 (or a number) in all lanes."""
    scalar = T.float32(value) if isinstance(value, (int, float)) else value
    return scalar if lanes == 1 else T.broadcast(scalar, lanes)


def span(start: Expr, lanes: int) -> Expr:
    """The index of `lanes` consecutive elements from `start`."""
    return start if lanes == 1 else T.ramp(start, 1, lanes)


def fma(a: Expr, b: Expr, c: Expr, lanes: int, fused: bool = True) -> Expr:
    """A * b + c, rounded once if the machine can (`fused`)."""
    return _llvm("fma", lanes, a, b, c) if fused else a * b + c


def maximum(a: Expr, b: Expr, lanes: int) -> Expr:
    """Larger of two, without regard to NaN."""
    return T.Select(a > b, a, b)


def shuffle(vectors: list[Expr], indices: list[int]) -> Expr:
    """Elements `indices` of the concatenated vectors."""
    return tirx.Shuffle(vectors, indices)


def fold(value: Expr, lanes: int, combine: Callable[[Expr, Expr], Expr]) -> Expr:
    """Reduce a vector to a scalar by halves: lane i meets lane i + half."""
    if lanes == 1:
        return value
    half = lanes // 2

    def halves(v: Expr) -> Expr:
        low = shuffle([v], list(range(half)))
        return combine(low, shuffle([v], list(range(half, lanes))))

    return fold(let(value, halves), half, combine)


def sum_lanes(value: Expr, lanes: int) -> Expr:
    """Sum of a vector, in an order that is fixed."""
    return fold(value, lanes, lambda a, b: a + b)


def max_lanes(value: Expr, lanes: int) -> Expr:
    """Largest element of a vector."""
    half = max(1, lanes // 2)
    return fold(value, lanes, lambda a, b: let(a, lambda x: let(b, lambda y: maximum(x, y, half))))


def horner(x: Expr, coefficients: list[float], lanes: int, fused: bool) -> Expr:
    """Polynomial in `x`, highest power first."""
    value = splat(coefficients[0], lanes)
    for c in coefficients[1:]:
        value = fma(value, x, splat(c, lanes), lanes, fused)
    return value


_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first has trailing zeros, so that n * high is exact.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
# Minimax of (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2 (Cephes, expf).
_EXP = [
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
]


def exp(value: Expr, lanes: int, fused: bool = True) -> Expr:
    """e^x with relative error below 2e-7; exactly 1 at 0; x is held within [-87.3, 88]."""

    def scaled(x: Expr) -> Expr:
        return let(_llvm("rint", lanes, x * splat(_LOG2_E, lanes)), lambda n: of_rest(x, n))

    def of_rest(x: Expr, n: Expr) -> Expr:
        high = fma(n, splat(-_LN2_HIGH, lanes), x, lanes, fused)
        return let(fma(n, splat(-_LN2_LOW, lanes), high, lanes, fused), lambda r: power(r, n))

    def power(r: Expr, n: Expr) -> Expr:
        tail = fma(horner(r, _EXP, lanes, fused), r * r, r, lanes, fused)
        bits = T.reinterpret(int_type(lanes), tail + splat(1.0, lanes))
        shift = T.int32(23) if lanes == 1 else T.broadcast(T.int32(23), lanes)
        exponent = T.shift_left(T.Cast(int_type(lanes), n), shift)
        return T.reinterpret(float_type(lanes), bits + exponent)

    low, high = splat(-87.3, lanes), splat(88.0, lanes)
    clamped = let(value, lambda x: T.Select(x < low, low, T.Select(x > high, high, x)))
    return let(clamped, scaled)

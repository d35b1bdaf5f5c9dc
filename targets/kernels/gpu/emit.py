"""Building blocks of GPU kernels: launches, loops of a block, reductions over a block.

They use the common subset of OpenCL C, CUDA, Metal and WGSL: no subgroups (Apple's are in
`simdgroups/`), no pointers, two grid axes (TVM uses the third on WebGPU), barriers only in uniform
control flow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as builder_tirx
from tvm.tirx import PrimFunc

from ..angles import COS, SIN
from ..constants import constant as constant

Expr = Any  # TVM expressions, which have no types for mypy
# Properties of float32 and float16: number of mantissa bits that float16 lacks; the float32 bits of
# -0, of the least normal and the largest float16, and of infinity.
_DROPPED = 13
_SIGN, _LEAST_HALF, _LARGEST_HALF, _INFINITY = 0x80000000, 0x38800000, 0x477FE000, 0x7F800000
Parameter = tuple[str, Sequence[int | str], str]  # name, shape (a string is a symbolic size), dtype


def prim_func(
    parameters: Sequence[Parameter],
    emit: Callable[[dict[str, Expr], dict[str, Expr]], None],
) -> PrimFunc:
    """Return a PrimFunc with tensor `parameters`; `emit(buffers, sizes)` writes its body.

    Both mappings are by name. `sizes` has the symbolic sizes, int32, and address arithmetic is
    int32, too: a tensor has fewer than 2^31 elements, or 64-bit indices where `emit` casts them. A
    tensor whose fixed sizes alone reach 2^31 gets 64-bit indices without a cast.
    """
    sizes: dict[str, Expr] = {}

    def sized(shape: Sequence[int | str]) -> list[Expr]:
        fixed = math.prod(d for d in shape if not isinstance(d, str))
        constant = T.int32 if fixed < 2**31 else T.int64
        return [
            (sizes[d] if d in sizes else sizes.setdefault(d, T.int32()))
            if isinstance(d, str)
            else constant(d)
            for d in shape
        ]

    with IRBuilder() as builder:
        with builder_tirx.prim_func(is_private=True, s_tir=True):
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            handles = [builder_tirx.arg(name, T.handle()) for name, _, _ in parameters]
            buffers = {
                name: T.match_buffer(handle, sized(shape), dtype)
                for handle, (name, shape, dtype) in zip(handles, parameters, strict=True)
            }
            emit(buffers, sizes)
    func: PrimFunc = builder.get()
    return func


def launch(
    grid: Sequence[Expr], threads: int, emit: Callable[..., None], blocks_at_a_time: int = 0
) -> None:
    """Emit a kernel with `threads` threads per block over a grid of one or two axes.

    `emit(*blocks, thread)` writes the body; all indices are int32. `blocks_at_a_time` limits the
    kernel's registers so that a multiprocessor runs that many blocks (CUDA only).
    """
    with ExitStack() as frames:
        blocks = [
            frames.enter_context(T.thread_binding(extent, thread=f"blockIdx.{axis}"))
            for extent, axis in zip(grid, "xy", strict=False)
        ]
        thread = frames.enter_context(T.thread_binding(threads, thread="threadIdx.x"))
        if blocks_at_a_time:
            key = "tirx.launch_bounds_min_blocks_per_sm"
            frames.enter_context(T.attr(T.int32(0), key, blocks_at_a_time))
        frames.enter_context(T.sblock("kernel"))
        T.reads()
        T.writes()
        emit(*[T.Cast("int32", block) for block in blocks], thread)


def shared(shape: tuple[int, ...], dtype: str = "float32") -> Expr:
    """Allocate shared memory of the block."""
    return T.sblock_alloc_buffer(shape, dtype, scope="shared")


def private(size: int, dtype: str = "float32") -> Expr:
    """Allocate memory of one thread, which becomes registers if all indices become constants."""
    return T.sblock_alloc_buffer((size,), dtype, scope="local")


def let(value: Expr) -> Expr:
    """Emit the computation of `value` once, at this place; return an expression to reuse."""
    buffer = private(1, str(value.ty.dtype))
    T.buffer_store(buffer, value, [0])
    return buffer[0]


class Variable:
    """A mutable number of one thread."""

    def __init__(self, value: Expr) -> None:
        self._memory = private(1, str(value.ty.dtype))
        self.set(value)

    def set(self, value: Expr) -> None:
        """Emit the assignment."""
        T.buffer_store(self._memory, value, [0])

    @property
    def value(self) -> Expr:
        """Return the variable's current value."""
        return self._memory[0]


def vector(buffer: Expr, *index: Expr) -> list[Expr]:
    """Emit one vector load of buffer[..., k : k + 4], k the last of `index`; return four elements.

    Float16 becomes float32. k should be visibly a multiple of four, without loads in it: the
    device's compiler must see that the four elements are adjacent and aligned.
    """
    loaded = buffer[(*index[:-1], T.ramp(index[-1], 1, 4))]
    if is_half(buffer):
        loaded = T.Cast("float32x4", loaded)
    elements = private(4, "float32" if is_half(buffer) else str(buffer.dtype))
    T.buffer_store(elements, loaded, [T.ramp(0, 1, 4)])
    return [elements[i] for i in range(4)]


def is_half(buffer: Expr) -> bool:
    """Return whether a buffer has float16 elements, which kernels store but do not compute with."""
    return str(buffer.dtype) == "float16"


def load(buffer: Expr, *index: Expr) -> Expr:
    """Emit the load of buffer[index] as float32."""
    return T.Cast("float32", buffer[index]) if is_half(buffer) else buffer[index]


def store(buffer: Expr, value: Expr, *index: Expr) -> None:
    """Emit buffer[index] = value, a float32 that `rounded` rounds to the buffer's dtype."""
    dtype = str(buffer.dtype)
    T.buffer_store(buffer, T.Cast(dtype, rounded(dtype, value)), list(index))


def rounded(dtype: str, value: Expr) -> Expr:
    """Return `value` rounded to `dtype`, as float32: what a load after a store would give.

    Rounds to nearest even; clamps to 65504, because an infinity would make the whole row NaN; and
    flushes numbers below the least normal one, 2^-14, to zero. It uses integer operations, because
    rounding and subnormals of conversions differ between devices, perhaps between kernels. A
    conversion leaves the results unchanged.
    """
    if dtype != "float16":
        return value
    bits = let(T.reinterpret("uint32", value))
    magnitude = let(T.bitwise_and(bits, T.uint32(_SIGN - 1)))
    odd = T.bitwise_and(T.shift_right(magnitude, T.uint32(_DROPPED)), T.uint32(1))
    grown = magnitude + T.uint32(2 ** (_DROPPED - 1) - 1) + odd
    near = T.bitwise_and(grown, T.uint32(2**32 - 2**_DROPPED))
    near = T.Select(magnitude < T.uint32(_LEAST_HALF), T.uint32(0), near)
    near = T.Select(near > T.uint32(_LARGEST_HALF), T.uint32(_LARGEST_HALF), near)
    near = T.Select(magnitude < T.uint32(_INFINITY), near, magnitude)
    return let(T.reinterpret("float32", T.bitwise_or(near, bits - magnitude)))


def div(a: Expr, b: int) -> Expr:
    """Return a // b for a >= 0; TVM's floor division would emit a 64-bit guard for the sign."""
    return T.truncdiv(a, b)


def mod(a: Expr, b: int) -> Expr:
    """Return a % b for a >= 0, without TVM's guard for the sign (see `div`)."""
    return T.truncmod(a, b)


def barrier() -> None:
    """Emit a barrier: all threads of the block see what any of them wrote to shared memory."""
    T.evaluate(T.tvm_storage_sync("shared"))


def when(condition: Expr, emit: Callable[[], None]) -> None:
    """Emit `if (condition) ...`."""
    with T.If(condition), T.Then():
        emit()


def if_else(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Emit `if (condition) ... else ...`."""
    with T.If(condition):
        with T.Then():
            then()
        with T.Else():
            otherwise()


def choose(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Emit the host's choice between two launches, as two loops of at most one iteration.

    It cannot be an `if`: TVM's barrier insertion would treat that as a condition around the
    barriers of the launch, and fail.
    """
    launch_if(condition, then)
    launch_if(T.Not(condition), otherwise)


def launch_if(condition: Expr, emit: Callable[[], None]) -> None:
    """Emit a launch that the host runs only if `condition` holds: a loop of 0 or 1 iterations."""
    with T.serial(T.Cast("int32", condition)):
        emit()


def over(count: int, threads: int, thread: Expr, emit: Callable[[Expr], None]) -> None:
    """Emit `emit(i)` for 0 <= i < count; neighbouring threads process neighbouring i."""

    def one(index: Expr, guarded: bool) -> None:
        if guarded:
            when(index < count, lambda: emit(index))
        else:
            emit(index)

    if count <= threads:
        one(thread, count < threads)
        return
    with T.serial(-(-count // threads)) as i:
        one(i * threads + thread, count % threads != 0)


def block_sums(values: Sequence[Expr], threads: int, thread: Expr) -> list[Expr]:
    """Emit the sum over all threads of each value, in a fixed order; all threads get the sums.

    Values are float32. `threads` is a power of two. The whole block must reach this.
    """
    # separate arrays, so that TVM sees that they do not overlap
    partials = [shared((threads,)) for _ in values]
    for partial, value in zip(partials, values, strict=True):
        T.buffer_store(partial, value, [thread])
    barrier()
    half = threads // 2
    while half:
        distance = half

        def add(distance: int = distance) -> None:
            for partial in partials:
                T.buffer_store(partial, partial[thread] + partial[thread + distance], [thread])

        when(thread < distance, add)
        barrier()
        half //= 2
    sums = [let(partial[0]) for partial in partials]
    barrier()  # a barrier before the shared memory is reused
    return sums


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    """Emit a * b + c, rounded once.

    It is explicit, because the device's compiler may contract `a * b + c` in one kernel and not in
    another that must agree.
    """
    return T.call_pure_extern("float32", "fma", a, b, c)


def number(value: float) -> Expr:
    """Return a float32 constant that is exact to its last bit.

    TVM writes seven digits of a float into OpenCL C, Metal and WGSL, but nine are needed; numbers
    that need more are written as their bits.
    """
    exact = np.float32(value)
    if np.float32(f"{exact:.6e}") == exact:
        return T.float32(float(exact))
    return T.reinterpret("float32", T.uint32(int(exact.view(np.uint32))))


# A radian in units of 2^-32 turns, 2^32 / (2 pi): its integer part, and the next twelve bits.
_RADIAN, _RADIAN_REST = divmod(round(2**44 / math.tau), 2**12)


def cos_sin(angle: Expr) -> tuple[Expr, Expr]:
    """Emit cosine and sine of 0 to 2^20 radians, with an absolute error below 1e-6.

    They are polynomials: WGSL and Vulkan only guarantee an error of 2^-11 within [-pi, pi], and
    Metal's fast functions are no better. Range reduction uses integers, which wrap at a whole turn:
    devices' compilers would merge the parts of a float subtraction.
    """
    bits = let(T.reinterpret("uint32", angle))
    digits = let(T.bitwise_or(T.bitwise_and(bits, T.uint32(2**23 - 1)), T.uint32(2**23)))
    point = let(T.int32(150) - T.Cast("int32", T.shift_right(bits, T.uint32(23))))

    def shifted(shift: Callable[[Expr, Expr], Expr], by: Expr) -> Expr:
        return shift(digits, T.Cast("uint32", T.min(T.max(by, T.int32(0)), T.int32(31))))

    turns = let(shifted(T.shift_right, point))
    left = T.bitwise_and(shifted(T.shift_left, 24 - point), T.uint32(2**24 - 1))
    # fraction of the angle in radians, in units of 2^-24
    part = let(T.Select(point > 24, shifted(T.shift_right, point - 24), left))
    turn = turns * T.uint32(_RADIAN)
    turn = turn + T.shift_right(turns * T.uint32(_RADIAN_REST), T.uint32(12))
    turn = let(turn + T.Cast("uint32", T.Cast("float32", part) * number(2**8 / math.tau)))
    quadrant = let(T.shift_right(turn + T.uint32(2**29), T.uint32(30)))
    eighths = T.reinterpret("int32", turn - T.shift_left(quadrant, T.uint32(30)))
    rest = let(T.Cast("float32", eighths) * number(math.tau / 2**32))
    square = let(rest * rest)
    sine = let(fma(_horner(square, SIN), square * rest, rest))
    head = let(fma(square, T.float32(-0.5), T.float32(1)))
    cosine = let(fma(_horner(square, COS), square * square, head))
    odd = T.bitwise_and(quadrant, T.uint32(1)) > T.uint32(0)

    def signed(value: Expr, quarters: Expr) -> Expr:
        negative = T.bitwise_and(quarters, T.uint32(2)) > T.uint32(0)
        return let(T.Select(negative, T.float32(0) - value, value))

    return (
        signed(let(T.Select(odd, sine, cosine)), quadrant + T.uint32(1)),
        signed(let(T.Select(odd, cosine, sine)), quadrant),
    )


def _horner(x: Expr, coefficients: Sequence[float]) -> Expr:
    """Emit a polynomial in `x`; the coefficient of the highest power comes first."""
    total = number(coefficients[0])
    for coefficient in coefficients[1:]:
        total = let(fma(total, x, number(coefficient)))
    return total

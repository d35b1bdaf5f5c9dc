"""What the GPU kernels are written in: launches, loops of a block, sums over a block.

Everything is the common part of OpenCL C, CUDA, Metal and WGSL: no subgroups, no pointers, two
grid axes (TVM keeps the third for itself on WebGPU), barriers in uniform control flow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from tvm.script import tirx as T

Expr = Any  # of TVM, which has no types of its own for mypy


def launch(grid: Sequence[Expr], threads: int, emit: Callable[..., None]) -> None:
    """Emit a kernel of `threads` a block over a grid of one or two axes.

    `emit(*blocks, thread)` writes the body; all indices are int32.
    """
    with ExitStack() as frames:
        blocks = [
            frames.enter_context(T.thread_binding(extent, thread=f"blockIdx.{axis}"))
            for extent, axis in zip(grid, "xy", strict=False)
        ]
        thread = frames.enter_context(T.thread_binding(threads, thread="threadIdx.x"))
        frames.enter_context(T.sblock("kernel"))
        T.reads()
        T.writes()
        emit(*[T.Cast("int32", block) for block in blocks], thread)


def shared(shape: tuple[int, ...], dtype: str = "float32") -> Expr:
    """Memory of the block."""
    return T.sblock_alloc_buffer(shape, dtype, scope="shared")


def private(size: int, dtype: str = "float32") -> Expr:
    """Memory of one thread, registers if all indices become constants."""
    return T.sblock_alloc_buffer((size,), dtype, scope="local")


def let(value: Expr) -> Expr:
    """Emit the computation of `value` here, once; use the result as often as needed."""
    buffer = private(1, str(value.ty.dtype))
    T.buffer_store(buffer, value, [0])
    return buffer[0]


def barrier() -> None:
    """All threads of the block see what any of them wrote to shared memory."""
    T.evaluate(T.tvm_storage_sync("shared"))


def when(condition: Expr, emit: Callable[[], None]) -> None:
    """Emit `if (condition) ...`."""
    with T.If(condition), T.Then():
        emit()


def either(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """Emit `if (condition) ... else ...`."""
    with T.If(condition):
        with T.Then():
            then()
        with T.Else():
            otherwise()


def over(count: int, threads: int, thread: Expr, emit: Callable[[Expr], None]) -> None:
    """Emit `emit(i)` for 0 <= i < count, neighbours on neighbouring threads."""

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


def block_sum(value: Expr, threads: int, thread: Expr) -> Expr:
    """Emit the sum of one float32 of each thread, in an order that is fixed; all threads have it.

    `threads` is a power of two. Must be reached by the whole block.
    """
    partial = shared((threads,))
    T.buffer_store(partial, value, [thread])
    barrier()
    half = threads // 2
    while half:
        distance = half

        def add(distance: int = distance) -> None:
            T.buffer_store(partial, partial[thread] + partial[thread + distance], [thread])

        when(thread < distance, add)
        barrier()
        half //= 2
    return partial[0]


def fma(a: Expr, b: Expr, c: Expr) -> Expr:
    """A * b + c, rounded once.

    Explicit, because whether `a * b + c` is contracted is up to the device's compiler, and it may
    choose differently in two kernels that must agree.
    """
    return T.call_pure_extern("float32", "fma", a, b, c)


def number(value: float) -> Expr:
    """A float32 constant to its last bit.

    TVM writes seven digits of a float into OpenCL C, Metal and WGSL, where nine are needed; what
    they do not tell apart goes in as its bits.
    """
    exact = np.float32(value)
    if np.float32(f"{exact:.6e}") == exact:
        return T.float32(float(exact))
    return T.reinterpret("float32", T.uint32(int(exact.view(np.uint32))))


def constant(values: Sequence[float], index: Expr) -> Expr:
    """values[index] as float32, without a table in memory: log2(len) comparisons."""

    def bits(low: int, high: int) -> Expr:
        if high - low == 1:
            return T.uint32(int(np.float32(values[low]).view(np.uint32)))
        middle = (low + high) // 2
        return T.if_then_else(index < middle, bits(low, middle), bits(middle, high))

    return T.reinterpret("float32", bits(0, len(values)))


_TURN = (6.2831854820251465, -1.7484556000744883e-07)  # 2 pi: a float32, and the rest


def cos_sin(angle: Expr) -> tuple[Expr, Expr]:
    """Emit cosine and sine of up to 10^5 radians.

    Brought to one turn first: some devices' own functions are good for small angles alone.
    """
    x = let(angle)
    turns = let(T.floor(fma(x, number(1 / _TURN[0]), T.float32(0.5))))
    rest = let(fma(turns, number(-_TURN[1]), fma(turns, number(-_TURN[0]), x)))
    return let(T.cos(rest)), let(T.sin(rest))

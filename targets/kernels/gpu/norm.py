"""RMSNorm, alone and after a residual addition: a block a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import RMSNormSpec
from . import emit as e
from .limits import GpuLimits

Load = Callable[[Any], Any]  # of k: element k of a vector


def rms_norm(spec: RMSNormSpec, limits: GpuLimits) -> PrimFunc:
    """(x [n, d], w [d], y [n, d]), all float32."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def norm(x: T.handle, w: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(x, (n, d), "float32")
        Weight = T.match_buffer(w, (d,), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        e.launch((n,), threads, lambda row, t: _normalise(X, Weight, Y, row, t, threads, spec.eps))

    return norm


def add_rms_norm(spec: RMSNormSpec, limits: GpuLimits) -> PrimFunc:
    """(x [n, d], residual [n, d], w [d], sum [n, d], y [n, d]), all float32."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def add_norm(
        x: T.handle, residual: T.handle, w: T.handle, total: T.handle, y: T.handle
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(x, (n, d), "float32")
        R = T.match_buffer(residual, (n, d), "float32")
        Weight = T.match_buffer(w, (d,), "float32")
        Sum = T.match_buffer(total, (n, d), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        e.launch(
            (n,),
            threads,
            lambda row, t: _add_normalise(X, R, Weight, Sum, Y, row, t, threads, spec.eps),
        )

    return add_norm


def _add_normalise(
    X: Any, R: Any, W: Any, Sum: Any, Y: Any, row: Any, thread: Any, threads: int, eps: float
) -> None:
    def add(k: Any) -> None:
        T.buffer_store(Sum, X[row, k] + R[row, k], [row, k])

    # A thread reads back what it wrote itself: no barrier.
    e.over(int(X.shape[1]), threads, thread, add)
    _normalise(Sum, W, Y, row, thread, threads, eps)


def _normalise(X: Any, W: Any, Y: Any, row: Any, thread: Any, threads: int, eps: float) -> None:
    d = int(X.shape[1])
    inverse = e.let(inverse_rms(lambda k: X[row, k], d, thread, threads, eps))

    def scale(k: Any) -> None:
        T.buffer_store(Y, X[row, k] * inverse * W[k], [row, k])

    e.over(d, threads, thread, scale)


def inverse_rms(load: Load, d: int, thread: Any, threads: int, eps: float) -> Any:
    """Emit 1 / sqrt(mean of squares + eps) of `d` elements; every thread of the block has it."""
    return inverses_rms([load], d, thread, threads, eps)[0]


def inverses_rms(loads: Sequence[Load], d: int, thread: Any, threads: int, eps: float) -> list[Any]:
    """`inverse_rms` of several vectors at once; each has the bits that it has alone."""
    squares = e.private(len(loads))
    for i in range(len(loads)):
        T.buffer_store(squares, T.float32(0), [i])

    def add(k: Any) -> None:
        for i, load in enumerate(loads):
            x = e.let(load(k))
            T.buffer_store(squares, e.fma(x, x, squares[i]), [i])

    e.over(d, threads, thread, add)
    totals = e.block_sums([squares[i] for i in range(len(loads))], threads, thread)
    return [
        e.let(T.float32(1) / T.sqrt(e.fma(total, e.number(1 / d), e.number(eps))))
        for total in totals
    ]

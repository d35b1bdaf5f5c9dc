"""RMSNorm, alone and after a residual addition, and LayerNorm, on GPUs: one block per row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LayerNormSpec, RMSNormSpec

from . import emit as e
from .limits import GpuLimits
from .sums import block_sums

Load = Callable[[Any], Any]  # function: k -> element k of a vector


@dataclass(frozen=True, slots=True)
class _Block:
    """The threads that share a row."""

    thread: Any
    threads: int
    limits: GpuLimits


def rms_norm(spec: RMSNormSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of RMSNorm (x [n, d], w [d], y [n, d]), all float32."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(row: Any, t: Any) -> None:
            _normalise(b["x"], b["w"], b["y"], row, spec.eps, _Block(t, threads, limits))

        e.launch((sizes["n"],), threads, block)

    return e.prim_func(
        [("x", ("n", d), "float32"), ("w", (d,), "float32"), ("y", ("n", d), "float32")], emit
    )


def add_rms_norm(spec: RMSNormSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of a residual addition with RMSNorm.

    (x [n, d], residual [n, d], w [d], sum [n, d], y [n, d]), all float32
    """
    d, threads = spec.dim, limits.block_for(spec.dim)
    row_names = ("x", "residual", "sum", "y")

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(row: Any, t: Any) -> None:
            x, residual, total, y = (b[name] for name in row_names)
            _add_normalise(x, residual, b["w"], total, y, row, spec.eps, _Block(t, threads, limits))

        e.launch((sizes["n"],), threads, block)

    rows: list[e.Parameter] = [(name, ("n", d), "float32") for name in row_names]
    return e.prim_func([*rows[:2], ("w", (d,), "float32"), *rows[2:]], emit)


def layer_norm(spec: LayerNormSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of LayerNorm.

    (x [n, d], w [d], b [d] if the spec has a bias, y [n, d]), all float32
    """
    d, threads = spec.dim, limits.block_for(spec.dim)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(row: Any, t: Any) -> None:
            _centre(b["x"], b["w"], b.get("b"), b["y"], row, spec.eps, _Block(t, threads, limits))

        e.launch((sizes["n"],), threads, block)

    return e.prim_func(
        [
            ("x", ("n", d), "float32"),
            ("w", (d,), "float32"),
            *([("b", (d,), "float32")] if spec.bias else []),
            ("y", ("n", d), "float32"),
        ],
        emit,
    )


def _centre(
    X: Any,
    W: Any,
    B: Any | None,
    Y: Any,
    row: Any,
    eps: float,
    block: _Block,
) -> None:
    """Emit Y[row] = (X[row] - mean) / sqrt(variance + eps) * W + B."""
    d, thread, threads = int(X.shape[1]), block.thread, block.threads
    sums = e.private(2)
    for i in range(2):
        T.buffer_store(sums, T.float32(0), [i])
    e.over(d, threads, thread, lambda k: T.buffer_store(sums, sums[0] + X[row, k], [0]))
    (total,) = block_sums(block.limits, [sums[0]], threads, thread)
    mean = e.let(total * e.number(1 / d))

    def add_square(k: Any) -> None:
        x = e.let(X[row, k] - mean)
        T.buffer_store(sums, e.fma(x, x, sums[1]), [1])

    e.over(d, threads, thread, add_square)
    (squares,) = block_sums(block.limits, [sums[1]], threads, thread)
    inverse = e.let(T.float32(1) / T.sqrt(e.fma(squares, e.number(1 / d), e.number(eps))))

    def scale(k: Any) -> None:
        x = e.let((X[row, k] - mean) * inverse)
        T.buffer_store(Y, x * W[k] if B is None else e.fma(x, W[k], B[k]), [row, k])

    e.over(d, threads, thread, scale)


def _add_normalise(
    X: Any,
    R: Any,
    W: Any,
    Sum: Any,
    Y: Any,
    row: Any,
    eps: float,
    block: _Block,
) -> None:
    def add(k: Any) -> None:
        T.buffer_store(Sum, X[row, k] + R[row, k], [row, k])

    # Each thread only reads elements that it wrote itself, so no barrier is needed.
    e.over(int(X.shape[1]), block.threads, block.thread, add)
    _normalise(Sum, W, Y, row, eps, block)


def _normalise(
    X: Any,
    W: Any,
    Y: Any,
    row: Any,
    eps: float,
    block: _Block,
) -> None:
    d, thread, threads = int(X.shape[1]), block.thread, block.threads
    inverse = e.let(inverse_rms(lambda k: X[row, k], d, thread, threads, eps, block.limits))

    def scale(k: Any) -> None:
        T.buffer_store(Y, X[row, k] * inverse * W[k], [row, k])

    e.over(d, threads, thread, scale)


def inverse_rms(
    load: Load, d: int, thread: Any, threads: int, eps: float, limits: GpuLimits
) -> Any:
    """Emit 1 / sqrt(mean of squares + eps) of `d` elements; every thread of the block gets it."""
    return inverses_rms([load], d, thread, threads, eps, limits)[0]


def inverses_rms(
    loads: Sequence[Load], d: int, thread: Any, threads: int, eps: float, limits: GpuLimits
) -> list[Any]:
    """Emit `inverse_rms` of several vectors at once, each with the bits that it has alone."""
    squares = e.private(len(loads))
    for i in range(len(loads)):
        T.buffer_store(squares, T.float32(0), [i])

    def add(k: Any) -> None:
        for i, load in enumerate(loads):
            x = e.let(load(k))
            T.buffer_store(squares, e.fma(x, x, squares[i]), [i])

    e.over(d, threads, thread, add)
    totals = block_sums(limits, [squares[i] for i in range(len(loads))], threads, thread)
    return [
        e.let(T.float32(1) / T.sqrt(e.fma(total, e.number(1 / d), e.number(eps))))
        for total in totals
    ]

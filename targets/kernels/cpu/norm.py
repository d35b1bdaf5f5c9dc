"""RMSNorm, alone and after a residual addition, and LayerNorm, on CPUs.

A sum over a row uses 16-lane accumulators, then adds the elements beyond the last whole vector,
then the lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LayerNormSpec, RMSNormSpec, script

from . import vector as v
from .isa import Isa
from .tiles import each_row

Load = Callable[[Any, int], Any]  # arguments: first element, number of lanes
_CHAINS = 4  # independent accumulators, which hide the latency of the FMA


def rms_norm(spec: RMSNormSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of RMSNorm (x [n, d], w [d], y [n, d]), all float32."""
    d = spec.dim

    @script.prim_func(s_tir=True, private=True)
    def norm(x: T.handle, w: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(x, (n, d), "float32")
        Weight = T.match_buffer(w, (d,), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 2 * d, lambda row: _normalise(X, Weight, Y, row, spec.eps, isa))

    return norm


def add_rms_norm(spec: RMSNormSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of a residual addition with RMSNorm.

    (x [n, d], residual [n, d], w [d], sum [n, d], y [n, d]), all float32
    """
    d = spec.dim

    @script.prim_func(s_tir=True, private=True)
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
        each_row(n, 3 * d, lambda row: _add_normalise(X, R, Weight, Sum, Y, row, spec.eps, isa))

    return add_norm


def layer_norm(spec: LayerNormSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of LayerNorm.

    (x [n, d], w [d], b [d] if the spec has a bias, y [n, d]), all float32
    """
    d = spec.dim

    if spec.bias:

        @script.prim_func(s_tir=True, private=True)
        def centre(x: T.handle, w: T.handle, b: T.handle, y: T.handle) -> None:
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            n = T.int64()
            X = T.match_buffer(x, (n, d), "float32")
            Weight = T.match_buffer(w, (d,), "float32")
            Bias = T.match_buffer(b, (d,), "float32")
            Y = T.match_buffer(y, (n, d), "float32")
            each_row(n, 4 * d, lambda row: _centre(X, Weight, Bias, Y, row, spec.eps, isa))

        return centre

    @script.prim_func(s_tir=True, private=True)
    def centre_plain(x: T.handle, w: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(x, (n, d), "float32")
        Weight = T.match_buffer(w, (d,), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 4 * d, lambda row: _centre(X, Weight, None, Y, row, spec.eps, isa))

    return centre_plain


def _centre(X: Any, W: Any, B: Any | None, Y: Any, row: Any, eps: float, isa: Isa) -> None:
    """Emit Y[row] = (X[row] - mean) / sqrt(variance + eps) * W + B."""
    d = int(X.shape[1])
    mean = _mean(d, lambda acc, start, lanes: acc + X[row, v.span(start, lanes)])

    def add_square(acc: Any, start: Any, lanes: int) -> Any:
        x = v.let(X[row, v.span(start, lanes)] - v.splat(mean, lanes))
        return v.fma(x, x, acc, lanes, isa.fma)

    inverse = _inverse_root(_mean(d, add_square), eps)

    def scale(column: Any, lanes: int) -> None:
        span = v.span(column, lanes)
        x = v.let((X[row, span] - v.splat(mean, lanes)) * v.splat(inverse, lanes))
        y = x * W[span] if B is None else v.fma(x, W[span], B[span], lanes, isa.fma)
        T.buffer_store(Y, y, [row, span])

    v.over_columns(d, scale)


def _add_normalise(
    X: Any, R: Any, W: Any, Sum: Any, Y: Any, row: Any, eps: float, isa: Isa
) -> None:
    def add(column: Any, lanes: int) -> None:
        index = (row, v.span(column, lanes))
        T.buffer_store(Sum, X[index] + R[index], list(index))

    v.over_columns(int(X.shape[1]), add)
    _normalise(Sum, W, Y, row, eps, isa)


def _normalise(X: Any, W: Any, Y: Any, row: Any, eps: float, isa: Isa) -> None:
    """Emit Y[row] = X[row] / sqrt(mean(X[row]^2) + eps) * W."""
    d = int(X.shape[1])
    inverse = inverse_rms(d, lambda start, lanes: X[row, v.span(start, lanes)], eps, isa)

    def scale(column: Any, lanes: int) -> None:
        x = X[row, v.span(column, lanes)] * v.splat(inverse, lanes)
        T.buffer_store(Y, x * W[v.span(column, lanes)], [row, v.span(column, lanes)])

    v.over_columns(d, scale)


def inverse_rms(d: int, load: Load, eps: float, isa: Isa) -> Any:
    """Emit 1 / sqrt(mean of squares + eps) of `d` elements; `load(start, lanes)` reads them."""

    def add_square(acc: Any, start: Any, lanes: int) -> Any:
        x = v.let(load(start, lanes))
        return v.fma(x, x, acc, lanes, isa.fma)

    return _inverse_root(_mean(d, add_square), eps)


def _inverse_root(mean: Any, eps: float) -> Any:
    return v.let(T.float32(1) / T.sqrt(mean + T.float32(eps)))


def _mean(d: int, add: Callable[[Any, Any, int], Any]) -> Any:
    """Emit the mean over `d` elements; `add(sum, start, lanes)` adds `lanes` elements to a sum."""
    sums = [T.sblock_alloc_buffer((16,), "float32") for _ in range(_CHAINS)]
    rest = T.sblock_alloc_buffer((1,), "float32")
    ramp = v.span(0, 16)

    def step_of(acc: Any, start: Any, lanes: int) -> None:
        index = v.span(0, lanes)
        T.buffer_store(acc, add(acc[index], start, lanes), [index])

    for acc in sums:
        T.buffer_store(acc, v.splat(0.0, 16), [ramp])
    T.buffer_store(rest, T.float32(0), [0])
    step = 16 * _CHAINS
    if d >= step:
        with T.serial(d // step) as i:
            for c, acc in enumerate(sums):
                step_of(acc, i * step + c * 16, 16)
    for c in range(d % step // 16):
        step_of(sums[c], d // step * step + c * 16, 16)
    if d % 16:
        with T.serial(d % 16) as i:
            step_of(rest, d // 16 * 16 + i, 1)
    lane_sums = v.let((sums[0][ramp] + sums[1][ramp]) + (sums[2][ramp] + sums[3][ramp]))
    return v.let((v.sum_lanes(lane_sums, 16) + rest[0]) * T.float32(1.0 / d))


def head_norms(X: Any, row: Any, heads: int, eps: float, isa: Isa) -> Any:
    """Emit 1 / sqrt(mean of squares + eps) of the first `heads` heads of X [n, ., e] in `row`.

    Returns a buffer [heads]. One vector accumulates the squares of a head, and work on the next
    head hides the latency; then 16 heads are reduced together.
    """
    count, e = -(-heads // 16) * 16, int(X.shape[2])
    lanes = v.widest(e)
    squares = T.sblock_alloc_buffer((count, lanes), "float32")
    inverse = T.sblock_alloc_buffer((count,), "float32")
    span = v.span(0, lanes)
    for head in range(heads, count):
        T.buffer_store(squares, v.splat(0.0, lanes), [head, span])
    with T.serial(heads) as head, T.sblock("squares"):
        T.reads()
        T.writes()
        total = v.splat(0.0, lanes)
        for c in range(0, e, lanes):
            x = v.let(X[row, head, v.span(c, lanes)])
            total = v.let(v.fma(x, x, total, lanes, isa.fma))
        T.buffer_store(squares, total, [head, span])
    with T.serial(count // 16) as i, T.sblock("inverse"):
        T.reads()
        T.writes()
        sums = v.sum_of_each([squares[i * 16 + k, span] for k in range(16)], lanes)
        mean = v.let(sums * v.splat(1.0 / e, 16))
        root = v.square_root(mean + v.splat(eps, 16), 16)
        T.buffer_store(inverse, v.splat(1.0, 16) / root, [v.span(i * 16, 16)])
    return inverse

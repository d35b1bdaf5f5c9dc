"""SwiGLU and other activation functions, on CPUs."""

from __future__ import annotations

import math
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ActivationSpec, SwiGLUSpec, script

from . import vector as v
from .isa import Isa
from .tiles import each_row


def swiglu(spec: SwiGLUSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of SwiGLU: y = gate / (1 + exp(-gate)) * up.

    (gate_up [n, 2d], y [n, d]), float32
    """
    d = spec.dim

    @script.prim_func(s_tir=True, private=True)
    def gated(gate_up: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(gate_up, (n, 2 * d), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 8 * d, lambda row: _gate(X, Y, row, d, isa))

    return gated


def _gate(X: Any, Y: Any, row: Any, d: int, isa: Isa) -> None:
    def emit(column: Any, lanes: int) -> None:
        gate = v.let(X[row, v.span(column, lanes)])
        one = v.splat(1.0, lanes)
        silu = gate / (one + v.exp(v.splat(0.0, lanes) - gate, lanes, isa.fma))
        T.buffer_store(Y, silu * X[row, v.span(column + d, lanes)], [row, v.span(column, lanes)])

    v.over_columns(d, emit)


def activation(spec: ActivationSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of an activation (x [n, d] or [n, 2d] if gated, y [n, d]), float32."""
    d, width = spec.dim, spec.dim * (2 if spec.gated else 1)

    @script.prim_func(s_tir=True, private=True)
    def activated(x: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(x, (n, width), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 8 * d, lambda row: _activate(spec, X, Y, row, isa))

    return activated


def _activate(spec: ActivationSpec, X: Any, Y: Any, row: Any, isa: Isa) -> None:
    def emit(column: Any, lanes: int) -> None:
        y = FORMULAS[spec.kind](v.let(X[row, v.span(column, lanes)]), lanes, isa)
        if spec.gated:
            y = y * X[row, v.span(column + spec.dim, lanes)]
        T.buffer_store(Y, y, [row, v.span(column, lanes)])

    v.over_columns(spec.dim, emit)


def _silu(x: Any, lanes: int, isa: Isa, steepness: Any = None) -> Any:
    """Emit x / (1 + exp(-steepness)), the SiLU if `steepness` is None and so x itself."""
    minus = v.splat(0.0, lanes) - (x if steepness is None else steepness)
    return x / (v.splat(1.0, lanes) + v.exp(minus, lanes, isa.fma))


def gelu_tanh(x: Any, lanes: int, isa: Isa) -> Any:
    """Emit the tanh GELU, x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u)).

    u = sqrt(2 / pi) * (x + 0.044715 x^3).
    """
    twice = 2 * math.sqrt(2 / math.pi)
    cubic = v.fma(x * x, v.splat(0.044715 * twice, lanes), v.splat(twice, lanes), lanes, isa.fma)
    return _silu(x, lanes, isa, v.let(x * cubic))


# Approximation of erf: 1 - erf(z) = exp(-z^2) * (a1 t + ... + a5 t^5), t = 1 / (1 + p z), z >= 0;
# its error is 1.5e-7. Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
ERF_P = 0.3275911
ERF_A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def _gelu(x: Any, lanes: int, isa: Isa) -> Any:
    """Emit the exact GELU, x / 2 * (1 + erf(x / sqrt(2)))."""
    one = v.splat(1.0, lanes)
    z = v.let(v.maximum(x, v.splat(0.0, lanes) - x) * v.splat(math.sqrt(0.5), lanes))
    t = v.let(one / v.fma(z, v.splat(ERF_P, lanes), one, lanes, isa.fma))
    sum_ = v.splat(ERF_A[-1], lanes)
    for a in reversed(ERF_A[:-1]):
        sum_ = v.let(v.fma(sum_, t, v.splat(a, lanes), lanes, isa.fma))
    rest = v.let(sum_ * t * v.exp(v.splat(0.0, lanes) - z * z, lanes, isa.fma))
    half = v.splat(0.5, lanes)
    return x * T.Select(x < v.splat(0.0, lanes), half * rest, one - half * rest)


def _relu(x: Any, lanes: int, _isa: Isa) -> Any:
    return v.maximum(x, v.splat(0.0, lanes))


def _relu2(x: Any, lanes: int, isa: Isa) -> Any:
    y = v.let(_relu(x, lanes, isa))
    return y * y


FORMULAS = {
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": gelu_tanh,
    "relu": _relu,
    "relu2": _relu2,
}

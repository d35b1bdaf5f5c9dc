"""SwiGLU."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.specs import SwiGLUSpec

from . import vector as v
from .isa import Isa
from .tiles import each_row


def swiglu(spec: SwiGLUSpec, isa: Isa) -> PrimFunc:
    """(gate_up [n, 2d], y [n, d]), float32: y = gate / (1 + exp(-gate)) * up."""
    d = spec.dim

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
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

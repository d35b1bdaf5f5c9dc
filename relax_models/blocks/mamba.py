"""Mamba's layer: a selective scan of each channel, between a convolution and a gate.

A model states the operation; `passes/recurrent_state.py` adds the state and the slots.

Axes: n rows, d hidden, c channels, s elements of a channel's state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import MambaSpec
from wherry.ops.tags import PACK, RECURRENCE, tag

from ..arch import WeightRule, split
from ..config import Range, Size
from ..layers.activations import activate
from ..layers.dense import Unquantized, exact
from ..layers.norms import RMSNorm
from ..step import Batch
from .recurrent import ShortConv

Expand = Annotated[float, Range(0.01, 64)]
Rank = Size | Literal["auto"]


def rank_of(given: Rank, hidden_size: int) -> int:
    """Return the rank of the steps' projection; "auto" is a sixteenth of the hidden size."""
    return given if isinstance(given, int) else math.ceil(hidden_size / 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaShape:
    """Static shape of a Mamba layer."""

    spec: MambaSpec
    hidden_size: int
    rank: int  # of the steps' projection
    taps: int  # of the convolution
    conv_bias: bool
    bias: bool  # of the projections in and out
    norm_eps: float | None = None  # of norms of the steps, of B and of C; None: no norms

    def problem(self) -> str | None:
        """Return what is wrong, for an error about config.json."""
        return None if self.taps > 1 else f"a convolution of {self.taps} tap; 2 are the least"


class Mamba(nn.Module):
    """Mamba's layer.

    The projections of the steps, of B and of C, which decide how much of the state is kept over
    thousands of rows, stay float32 in every scheme, as do the convolution, A_log and D.
    """

    def __init__(self, shape: MambaShape) -> None:
        self.shape = shape
        c, s = shape.spec.channels, shape.spec.state_dim
        self.in_proj_x = nn.Linear(shape.hidden_size, c, bias=shape.bias)
        self.in_proj_z = nn.Linear(shape.hidden_size, c, bias=shape.bias)
        self.conv1d = ShortConv(c, shape.taps, bias=shape.conv_bias)
        self.x_proj = Unquantized(c, shape.rank + 2 * s, bias=False)
        self.dt_proj = Unquantized(shape.rank, c, bias=True)
        self.A_log = exact((c, s))
        self.D = exact((c,))
        eps = shape.norm_eps
        self.dt_layernorm = None if eps is None else RMSNorm(shape.rank, eps)
        self.b_layernorm = None if eps is None else RMSNorm(s, eps)
        self.c_layernorm = None if eps is None else RMSNorm(s, eps)
        self.out_proj = nn.Linear(c, shape.hidden_size, bias=shape.bias)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        spec = self.shape.spec
        gate = activate(self.in_proj_z(x), "silu", gated=False)
        x = self.conv1d(self.in_proj_x(x), batch)
        steps, bc = self._selected(x)
        args = [x, self.dt_proj(steps), bc, batch.query_indptr, self._constants()]
        out = Tensor.placeholder(list(x.shape), x.dtype)
        y = op.extern(RECURRENCE, ["mamba", spec.to_json(), *args], out)
        return self.out_proj(y * gate)

    def _selected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the steps' input [n, rank], and B and C [n, 2 s] of x [n, c]."""
        rank, s = self.shape.rank, self.shape.spec.state_dim
        if self.dt_layernorm is None or self.b_layernorm is None or self.c_layernorm is None:
            steps, bc = op.split(self.x_proj(x), [rank], axis=-1)
            return steps, bc
        steps, b, c = op.split(self.x_proj(x), [rank, rank + s], axis=-1)
        bc = op.concat([self.b_layernorm(b), self.c_layernorm(c)], dim=-1)
        return self.dt_layernorm(steps), bc

    def _constants(self) -> Tensor:
        c, s = self.shape.spec.channels, self.shape.spec.state_dim
        out = Tensor.placeholder([s + 1, c], "float32")
        return op.tensor_ir_op(constants(c, s), "constants", [self.A_log, self.D], out)


@cache
def constants(channels: int, state_dim: int) -> tirx.PrimFunc:
    """Return the PrimFunc (A_log [c, s], D [c]) -> [s + 1, c], which runs at the load.

    The first rows are the rates of the decay, -exp(A_log); the last is D.
    """
    a_log = te.placeholder((channels, state_dim), "float32", "a_log")
    skip = te.placeholder((channels,), "float32", "skip")

    def element(i: tirx.Var, c: tirx.Var) -> tirx.PrimExpr:
        rate = tirx.const(0, "float32") - tirx.exp(a_log[c, tirx.min(i, state_dim - 1)])
        return tirx.Select(i < state_dim, rate, skip[c])

    joined = te.compute((state_dim + 1, channels), element, "joined")
    func = te.create_prim_func([a_log, skip, joined]).without_attr("global_symbol")
    return tag(func, "constants", {"channels": channels}).with_attr(PACK, True)


def _parted(kind: str) -> WeightRule:
    return split(f"in_proj.{kind}", f"in_proj_x.{kind}", f"in_proj_z.{kind}")


# How checkpoint weights of Mamba layers become parameters.
MAMBA = (_parted("weight"), _parted("bias"))

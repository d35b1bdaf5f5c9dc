"""Activation functions of feed-forward layers, named as Hugging Face's `hidden_act`.

SiLU with a gate is the operation "swiglu", which a kernel may fuse into a linear; all others are
the operation "activation". `reference` is the portable PrimFunc.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import ActivationSpec
from wherry.ops.tags import tag

Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]
# Names of activations in config.json.
# activations without a gate
Name = Literal["silu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "relu2"]
NAMES: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}


def activate(x: Tensor, kind: Activation, *, gated: bool) -> Tensor:
    """Compute activation(x): x [n, d] -> [n, d].

    With `gated` it is activation(left half) * right half, [n, d/2].
    """
    columns = int(x.shape[1]) // (2 if gated else 1)
    func = reference(columns, kind, gated, x.dtype)
    out = Tensor.placeholder([x.shape[0], columns], x.dtype)
    return op.tensor_ir_op(func, "activation", [x], out)


@cache
def reference(dim: int, kind: Activation, gated: bool, dtype: str) -> tirx.PrimFunc:
    """Return the reference PrimFunc (x dtype [n, dim or 2 dim]) -> dtype [n, dim].

    The PrimFunc computes in float32.
    """
    n = te.var("n", "int64")
    x = te.placeholder((n, 2 * dim if gated else dim), dtype, "x")

    def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        y = formula(x[i, j].astype("float32"), kind)
        return (y * x[i, j + dim].astype("float32") if gated else y).astype(dtype)

    y = te.compute((n, dim), element, "y")
    func = te.create_prim_func([x, y]).without_attr("global_symbol")
    return tag(func, "activation", ActivationSpec(dim=dim, kind=kind, gated=gated))


def clipped(x: Tensor, limit: float) -> Tensor:
    """Clip x [n, d] to the range from -limit to limit."""
    most = tirx.const(limit, x.dtype)

    def compute(t: te.Tensor) -> te.Tensor:
        return te.compute(t.shape, lambda *i: tirx.max(tirx.min(t[i], most), -most), "clipped")

    return op.tensor_expr_op(compute, "clipped", [x])


def formula(x: Any, kind: Activation) -> Any:
    """Return the float32 expression of an activation function."""
    if kind == "silu":
        return x * tirx.sigmoid(x)
    if kind == "gelu":
        return x * (tirx.const(0.5, "float32") + tirx.erf(x * math.sqrt(0.5)) * 0.5)
    if kind == "gelu_tanh":
        # The tanh GELU: 0.5 (1 + tanh(u)) equals sigmoid(2u).
        return x * tirx.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    positive = tirx.max(x, tirx.const(0, "float32"))
    return positive * positive if kind == "relu2" else positive

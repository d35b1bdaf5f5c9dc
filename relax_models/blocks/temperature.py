"""Attention temperature: queries grow with the logarithm of their position.

Long contexts flatten the softmax of scores; larger queries sharpen it again (Llama 4, from
https://arxiv.org/abs/2501.19399).
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tirx
from tvm.relax.frontend.nn import Tensor, op


@dataclass(frozen=True, slots=True)
class Temperature:
    """Factor of a query at position p: 1 + growth * log(1 + (p + ahead) // interval)."""

    growth: float
    interval: int  # tokens between two steps of the factor
    ahead: int = 0  # number of positions by which a step comes earlier


def tempered(qkv: Tensor, positions: Tensor, width: int, temperature: Temperature) -> Tensor:
    """Scale the first `width` columns of qkv [n, w], the queries, at positions int32 [n].

    RoPE keeps the lengths of vectors, so this comes before it.
    """
    dtype = qkv.dtype

    def compute(t: te.Tensor, p: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
            steps = tirx.floordiv(p[i] + temperature.ahead, temperature.interval)
            factor = 1.0 + temperature.growth * tirx.log(1.0 + steps.astype("float32"))
            scaled = (t[i, k].astype("float32") * factor).astype(dtype)
            return tirx.if_then_else(k < width, scaled, t[i, k])

        return te.compute(t.shape, element, "tempered")

    return op.tensor_expr_op(compute, "tempered", [qkv, positions])

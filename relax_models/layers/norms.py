"""Norms over the last axis. Axes: n rows, d elements."""

from __future__ import annotations

from functools import cache

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import LayerNormSpec
from wherry.ops.tags import PACK, tag


class _Norm(nn.Module):
    """Norm with a weight [d], to which `offset` is added once, when a model is loaded."""

    def __init__(self, size: int, eps: float, offset: float = 0.0) -> None:
        self.size, self.eps, self.offset = size, eps, offset
        self.weight = nn.Parameter((size,))

    def factor(self) -> Tensor:
        """Return the factor [d] of normalized elements: weight + offset."""
        if not self.offset:
            return self.weight
        func = offset_reference(self.size, self.offset, self.weight.dtype)
        out = Tensor.placeholder([self.size], self.weight.dtype)
        return op.tensor_ir_op(func, "offset", [self.weight], out)


class RMSNorm(_Norm):
    """RMSNorm: x / sqrt(mean(x^2) + eps) * (offset + weight)."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize: x [n, d] -> [n, d]."""
        return op.rms_norm(x, self.factor(), -1, self.eps)


class LayerNorm(_Norm):
    """LayerNorm: (x - mean(x)) / sqrt(variance(x) + eps) * (offset + weight) + bias."""

    def __init__(self, size: int, eps: float, *, bias: bool = True, offset: float = 0.0) -> None:
        super().__init__(size, eps, offset)
        self.bias = nn.Parameter((size,)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        func = layer_norm_reference(self.size, self.eps, self.bias is not None, x.dtype)
        bias = [] if self.bias is None else [self.bias]
        out = Tensor.placeholder(list(x.shape), x.dtype)
        return op.tensor_ir_op(func, "layer_norm", [x, self.factor(), *bias], out)


@cache
def offset_reference(size: int, offset: float, dtype: str) -> tirx.PrimFunc:
    """Return the PrimFunc (weight dtype [size]) -> weight + offset."""
    weight = te.placeholder((size,), dtype, "weight")
    total = te.compute((size,), lambda i: weight[i] + tirx.const(offset, dtype), "total")
    func = te.create_prim_func([weight, total]).without_attr("global_symbol")
    return tag(func, "offset", {"offset": offset}).with_attr(PACK, True)


@cache
def layer_norm_reference(dim: int, eps: float, bias: bool, dtype: str) -> tirx.PrimFunc:
    """Return the reference PrimFunc (x [n, dim], weight [dim], bias [dim] if any) -> [n, dim].

    Arguments and result have the dtype `dtype`; it computes in float32.
    """
    n = te.var("n", "int64")
    x = te.placeholder((n, dim), dtype, "x")
    w, b = (te.placeholder((dim,), dtype, name) for name in ("weight", "bias"))
    k, j = te.reduce_axis((0, dim), "k"), te.reduce_axis((0, dim), "j")
    size = tirx.const(dim, "float32")
    total = te.compute((n,), lambda i: te.sum(x[i, k].astype("float32"), k), "total")

    def centred(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        return x[i, j].astype("float32") - total[i] / size

    square = te.compute((n,), lambda i: te.sum(centred(i, j) * centred(i, j), j), "square")

    def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        inverse = tirx.rsqrt(square[i] / size + tirx.const(eps, "float32"))
        y = centred(i, j) * inverse * w[j].astype("float32")
        return (y + b[j].astype("float32") if bias else y).astype(dtype)

    y = te.compute((n, dim), element, "y")
    func = te.create_prim_func([x, w, *([b] if bias else []), y]).without_attr("global_symbol")
    return tag(func, "layer_norm", LayerNormSpec(dim=dim, eps=eps, bias=bias))

"""Linears that were trained with inputs of 8 bits a row (BitNet), whatever a kernel multiplies.

A row x becomes integers k = round(x * 127 / max|x|), and the linear's result is multiplied by
max|x| / 127. What the kernel reads is k times a power of two near that factor: float16 represents
it, and so do int8 groups whose scales are powers of two, so no target rounds it again. Source:
transformers' `integrations/bitnet.py`.

Axes: n rows, d inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from ..arch import Architecture

F32 = "float32"
_MOST = 127  # of an integer
_LEAST = 1e-5  # of max|x|
_EXPONENT = 0x7F800000  # the bits of a float32's exponent
_HEAD = "lm_head"  # reads floats


class BitLinear(nn.Module):
    """A linear with the parameters of another, whose input rows it rounds to 8 bits."""

    def __init__(self, linear: nn.Linear) -> None:
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """x [n, d] -> [n, out]."""
        most = op.tensor_expr_op(_largest, "row_most", [x])
        y = op.matmul(op.tensor_expr_op(_rounded, "round_rows", [x, most]), _transposed(self))
        y = op.tensor_expr_op(_scaled, "scale_rows", [y, most])
        return y if self.bias is None else y + self.bias


def _transposed(linear: BitLinear) -> Tensor:
    """Return the weight as `Quantize` finds it, [d, out]."""
    return op.permute_dims(linear.weight)


class _Replace(nn.Mutator):
    def visit_module(self, name: str, node: nn.Module) -> Any:
        """Return a linear's replacement; the LM head and what is never quantized stay."""
        if type(node) is nn.Linear:
            return node if name == _HEAD else BitLinear(node)
        return self.visit(name, node)


def with_bit_linears(arch: Architecture) -> Architecture:
    """Return an architecture all of whose linears but the LM head round their inputs."""
    make: Callable[[Any], Any] = arch.model

    def model(config: Any) -> Any:
        return _Replace().visit("", make(config))

    return replace(arch, model=model)


def _largest(x: te.Tensor) -> te.Tensor:
    """Return max|x| of each row [n, d] -> float32 [n, 1]."""
    k = te.reduce_axis((0, x.shape[1]), "k")
    return te.compute((x.shape[0], 1), lambda i, _: te.max(tirx.abs(x[i, k].astype(F32)), k), "m")


def _factor(most: tirx.PrimExpr) -> tuple[tirx.PrimExpr, tirx.PrimExpr]:
    """Return max|x| / 127, and the largest power of two that is no larger."""
    factor = tirx.max(most, tirx.const(_LEAST, F32)) * tirx.const(1 / _MOST, F32)
    bits = tirx.reinterpret("int32", factor)
    return factor, tirx.reinterpret(F32, tirx.bitwise_and(bits, tirx.const(_EXPONENT, "int32")))


def _rounded(x: te.Tensor, most: te.Tensor) -> te.Tensor:
    """Return the integers of rows [n, d] times a power of two, in x's dtype."""

    def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
        largest = tirx.max(most[i, 0], tirx.const(_LEAST, F32))
        value = x[i, k].astype(F32) * (tirx.const(_MOST, F32) / largest)
        return (_nearest(value) * _factor(most[i, 0])[1]).astype(x.dtype)

    return te.compute(x.shape, element, "rounded")


def _nearest(x: tirx.PrimExpr) -> tirx.PrimExpr:
    """Round to the nearest integer, halves to even.

    Written out, because the devices' own functions differ in halves.
    """
    half, one = tirx.const(0.5, F32), tirx.const(1, F32)
    below = tirx.floor(x)
    rest = x - below
    odd = tirx.floor(below * half) != below * half
    up = tirx.any(rest > half, tirx.all(rest == half, odd))
    return below + tirx.Select(up, one, tirx.const(0, F32))


def _scaled(y: te.Tensor, most: te.Tensor) -> te.Tensor:
    """Return results [n, out] times what is left of the rows' factors."""

    def element(i: tirx.Var, k: tirx.Var) -> tirx.PrimExpr:
        factor, power = _factor(most[i, 0])
        return (y[i, k].astype(F32) * (factor / power)).astype(y.dtype)

    return te.compute(y.shape, element, "scaled")

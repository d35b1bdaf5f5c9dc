"""Reference PrimFuncs of the operations that read quantized weights.

They dequantize each weight where they use it, with the expression `scheme.element`.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from tvm import te, tirx

from wherry.models.blocks.expert_reference import expert_linear as expert_linear_of
from wherry.models.blocks.expert_reference import gate as expert_gate
from wherry.ops import ExpertLinearSpec
from wherry.ops.tags import tag
from wherry.passes.quantize import MATRIX, References
from wherry.quant.scheme import Scheme


@cache
def _linear(scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
    """Return a PrimFunc (x dtype [m, columns], *stored) -> dtype [m, rows]; it sums in float32."""
    m = te.var("m", "int64")
    x = te.placeholder((m, columns), dtype, "x")
    stored = _placeholders(scheme, rows, columns)
    k = te.reduce_axis((0, columns), "k")
    y = te.compute(
        (m, rows),
        lambda i, o: te.sum(x[i, k].astype("float32") * scheme.element(stored, o, k), k),
        "y",
    )
    z = te.compute((m, rows), lambda i, o: y[i, o].astype(dtype), "z") if dtype != "float32" else y
    spec = {"out_features": rows, "in_features": columns, **scheme.kernel_spec()}
    func = te.create_prim_func([x, *stored, z]).without_attr("global_symbol")
    return tag(func, "linear", spec)


@cache
def _embedding(scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
    """Return a PrimFunc (tokens int32 [n], *stored) -> dtype [n, columns]."""
    n = te.var("n", "int64")
    tokens = te.placeholder((n,), "int32", "tokens")
    stored = _placeholders(scheme, rows, columns)
    y = te.compute(
        (n, columns),
        lambda i, k: scheme.element(stored, tokens[i], k).astype(dtype),
        "y",
    )
    spec = {"vocab": rows, "dim": columns, **scheme.kernel_spec()}
    func = te.create_prim_func([tokens, *stored, y]).without_attr("global_symbol")
    return tag(func, "embedding", spec)


@cache
def _expert_linear(scheme: Scheme, spec: ExpertLinearSpec, dtype: str) -> tirx.PrimFunc:
    """Return the PrimFunc that `expert_reference.expert_linear` describes."""
    shape = (spec.experts, spec.out_features, spec.in_features)
    return expert_linear_of(asdict(spec), scheme, _placeholders(scheme, *shape), dtype)


def _placeholders(scheme: Scheme, *shape: int) -> list[te.Tensor]:
    """Return TE placeholders for the tensors that store a weight of this shape."""
    stored = scheme.stored(MATRIX, shape)
    return [te.placeholder(t.shape, t.dtype, t.name.rpartition(".")[2]) for t in stored]


class _References:
    """The implementation of `wherry.passes.quantize.References`."""

    def linear(self, scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
        return _linear(scheme, rows, columns, dtype)

    def embedding(self, scheme: Scheme, rows: int, columns: int, dtype: str) -> tirx.PrimFunc:
        return _embedding(scheme, rows, columns, dtype)

    def expert_linear(self, scheme: Scheme, spec: str, dtype: str) -> tirx.PrimFunc:
        return _expert_linear(scheme, ExpertLinearSpec.from_json(spec), dtype)

    def expert_gate(self, spec: str, dtype: str) -> tirx.PrimFunc:
        return expert_gate(ExpertLinearSpec.from_json(spec), dtype)


REFERENCES: References = _References()

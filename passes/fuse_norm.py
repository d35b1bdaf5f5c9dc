"""FuseNorm: name each RMSNorm, together with the residual add before it.

    s = R.add(x, residual)                    s, y = add_rms_norm(x, residual, w)
    y = R.nn.rms_norm(s, w)

    y = R.nn.rms_norm(x, w)                   y = rms_norm(x, w)

Runs in the fuse phase; x, residual [n, d], w [d], all of one dtype. The sum stays visible to its
other users.
"""

from __future__ import annotations

from tvm import IRModule, ir, relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_equal

from wherry.ops.tags import tag

from .kernels import rewritten

RMS_NORM = ir.Op.get("relax.nn.rms_norm")
ADD = ir.Op.get("relax.add")


@ir.transform.module_pass(opt_level=0, name="FuseNorm")
class FuseNorm:
    """Pass that replaces RMSNorm, and a residual addition before it, by one tagged PrimFunc."""

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        return rewritten(mod, _Rewriter(mod))


def reference(dim: int, eps: float, dtype: str, *, residual: bool) -> tirx.PrimFunc:
    """Return the reference PrimFunc (x, [residual,] w) -> ([sum,] y); it computes in float32."""
    n = te.var("n", "int64")
    x = te.placeholder((n, dim), dtype, "x")
    r = te.placeholder((n, dim), dtype, "residual")
    w = te.placeholder((dim,), dtype, "w")
    total = te.compute((n, dim), lambda i, k: x[i, k] + r[i, k], "total") if residual else x
    k = te.reduce_axis((0, dim), "k")
    square = te.compute(
        (n,),
        lambda i: te.sum(total[i, k].astype("float32") * total[i, k].astype("float32"), k),
        "square",
    )
    y = te.compute(
        (n, dim),
        lambda i, j: (
            total[i, j].astype("float32")
            * tirx.rsqrt(square[i] / tirx.const(dim, "float32") + tirx.const(eps, "float32"))
            * w[j].astype("float32")
        ).astype(dtype),
        "y",
    )
    func = te.create_prim_func([x, r, w, total, y] if residual else [x, w, y])
    op = "add_rms_norm" if residual else "rms_norm"
    return tag(func.without_attr("global_symbol"), op, {"dim": dim, "eps": eps})


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        # variable of the residual addition -> variable of the fused call
        self.sums: dict[relax.Var, relax.Var] = {}

    def visit_var_(self, var: relax.Var) -> relax.Expr:
        new = super().visit_var_(var)
        return self.sums.get(new, new)

    def visit_dataflow_var_(self, var: relax.DataflowVar) -> relax.Expr:
        new = super().visit_dataflow_var_(var)
        return self.sums.get(new, new)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        if call.op != RMS_NORM or call.args[0].ty.ndim != 2:
            return call
        x, weight = call.args
        add = self._residual_add(x)
        func = reference(
            int(x.ty.shape[1]), float(call.attrs.epsilon), str(x.ty.dtype), residual=add is not None
        )
        var = self.builder_.add_func(func, "add_rms_norm" if add is not None else "rms_norm")
        if add is None:
            return relax.call_tir(var, [x, weight], out_ty=x.ty)
        pair = self.builder_.emit(relax.call_tir(var, [*add.args, weight], out_ty=[x.ty, x.ty]))
        self.sums[x] = self.builder_.emit(relax.TupleGetItem(pair, 0))
        return relax.TupleGetItem(pair, 1)

    def _residual_add(self, x: relax.Expr) -> relax.Call | None:
        bound = self.lookup_binding(x) if isinstance(x, relax.Var) else None
        if not isinstance(bound, relax.Call) or bound.op != ADD:
            return None
        same = all(structural_equal(a.ty, x.ty) for a in bound.args)
        return bound if same else None

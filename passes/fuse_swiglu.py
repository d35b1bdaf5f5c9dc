"""FuseSwiGLU: name the gated activation whose gate and up projections are one linear.

    g, u = R.split(x, 2, axis=-1)             y = swiglu(x)
    y = R.multiply(R.nn.silu(g), u)

Runs in the fuse phase; x [n, 2f], y [n, f].
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, ir, relax, te, tirx
from tvm.relax.dpl import is_op, is_tuple_get_item, rewrite_call, wildcard

from wherry.ops import SwiGLUSpec
from wherry.ops.tags import tag


@ir.transform.module_pass(opt_level=0, name="FuseSwiGLU")
class FuseSwiGLU:
    """Pass that replaces split, SiLU and multiply by one tagged SwiGLU PrimFunc."""

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        halves = is_op("relax.split")(wildcard())
        silu = is_op("relax.nn.silu")(is_tuple_get_item(halves, 0))
        pattern = is_op("relax.multiply")(silu, is_tuple_get_item(halves, 1))
        builder = relax.BlockBuilder(mod)

        def rewrite(call: relax.Expr, matches: dict[Any, Any]) -> relax.Expr:
            split = matches[halves]
            x = split.args[0]
            if split.attrs.indices_or_sections != 2 or x.ty.ndim != 2:
                return call
            func = reference(int(x.ty.shape[1]) // 2, str(x.ty.dtype))
            return relax.call_tir(builder.add_func(func, "swiglu"), [x], out_ty=call.ty)

        changed = {
            var: rewrite_call(pattern, rewrite, func)
            for var, func in mod.functions_items()
            if isinstance(func, relax.Function)
        }
        for var, func in changed.items():
            builder.update_func(var, func)
        return relax.transform.DeadCodeElimination()(builder.get())


def reference(dim: int, dtype: str) -> tirx.PrimFunc:
    """Return the reference PrimFunc x [n, 2 * dim] -> [n, dim]; it computes in float32."""
    n = te.var("n", "int64")
    x = te.placeholder((n, 2 * dim), dtype, "x")

    def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        gate, up = x[i, j].astype("float32"), x[i, j + dim].astype("float32")
        return (gate * tirx.sigmoid(gate) * up).astype(dtype)

    y = te.compute((n, dim), element, "y")
    func = te.create_prim_func([x, y]).without_attr("global_symbol")
    return tag(func, "swiglu", SwiGLUSpec(dim=dim))

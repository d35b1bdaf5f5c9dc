"""FuseAttention: rotate, append to the cache and attend in one call, where a target can.

    pages, q = rope_append(qkv, positions, sequences, page_indptr, page_ids, pages)
    o = attention(q, positions, sequences, query_indptr, page_indptr, page_ids, pages)

    table = batch_table(positions, sequences, query_indptr, page_indptr, page_ids)
    pages, o = paged_attention(qkv, table, query_indptr, pages)

Runs in the fuse phase, after FuseLinear. The table is computed once for all layers. If the target
has a "qkv_attention", which computes qkv too, it replaces the linear that computes qkv:

    pages, o = qkv_attention(x, norm, W, table, query_indptr, pages)

The rows' positions on the axes of M-RoPE follow `query_indptr`, if the spec has axes, and then the
last positions that rows attend to, if it has those. The weights of the norms of q and k, two
inputs, go before the pages; if the kernel says `joined`,
they are one parameter of two rows.
"""

from __future__ import annotations

import json
from typing import Any

from tvm import IRModule, ir, relax, te, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops.tags import PACK, tag_of

from .kernels import Answers, Fused, Kernels, is_tir_call, rewritten, scratch_types

OPAQUE = 8  # TVM's kOpaque pattern: excluded from fusion with preceding casts
RESHAPE = ir.Op.get("relax.reshape")


@ir.transform.module_pass(opt_level=0, name="FuseAttention")
class FuseAttention:
    """Pass that fuses RoPE, the append to the KV cache and attention into one kernel call."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        return rewritten(mod, _Rewriter(mod, self.kernels))


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, kernels: Kernels) -> None:
        super().__init__(mod)
        self.mod = mod
        self.answers = Answers(self.builder_, kernels)
        self.tables: dict[tuple[relax.Expr, ...], relax.Var] = {}
        # (head size, norm offset) -> PrimFunc that joins two norms
        self.joins: dict[tuple[int, float], ir.GlobalVar] = {}

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        tagged = self._tag(call)
        if tagged is None or tagged[0] != "attention":
            return call
        rope = self._rope_of(call.args[1].fields[0])
        fused = None if rope is None else self._fused(call, rope, json.loads(tagged[1]))
        return call if fused is None else fused

    def _tag(self, call: relax.Expr | None) -> tuple[str, str] | None:
        if not isinstance(call, relax.Call) or not is_tir_call(call):
            return None
        return tag_of(self.builder_.get()[call.args[0]])

    def _spec(self, call: relax.Expr) -> dict[str, Any]:
        tagged = self._tag(call)
        assert tagged is not None
        spec: dict[str, Any] = json.loads(tagged[1])
        return spec

    def _bound(self, expr: relax.Expr) -> relax.Expr | None:
        return self.lookup_binding(expr) if isinstance(expr, relax.Var) else None

    def _rope_of(self, q: relax.Expr) -> relax.Call | None:
        element = self._bound(q)
        if not isinstance(element, relax.TupleGetItem):
            return None
        call = self._bound(element.tuple_value)
        tagged = self._tag(call)
        return call if tagged is not None and tagged[0] == "rope_append" else None

    def _fused(self, call: relax.Call, rope: relax.Call, spec: dict[str, Any]) -> relax.Expr | None:
        qkv, positions, sequences, page_indptr, page_ids, *more, pages = rope.args[1].fields
        query_indptr = call.args[1].fields[3]
        bounds = call.args[1].fields[6:7] if spec.get("last_visible") else []
        floats = {"qkv_dtype": str(qkv.ty.dtype), "out_dtype": str(call.ty_args[0].dtype)}
        spec = self._spec(rope) | spec | floats
        axes, norms = (more[:1], more[1:]) if spec.get("axes") else ([], more)
        sizes = {
            "n": positions.ty.shape[0],
            "r": query_indptr.ty.shape[0] - 1,
            "p": page_ids.ty.shape[0],
        }
        arrays = (positions, sequences, query_indptr, page_indptr, page_ids)
        table = self._table(arrays, {"page_size": int(pages.ty.shape[3])}, sizes)
        if table is None:
            return None
        tail = [table, query_indptr, *axes, *bounds, *norms, pages]
        linear = self._linear_of(qkv)
        if linear is not None:
            joint_spec = {"attention": spec, "linear": self._spec(linear)}
            known = self.answers.function("qkv_attention", joint_spec)
            if known is not None:
                return self._call(known, [*linear.args[1].fields, *tail], norms, call, sizes)
        known = self.answers.function("paged_attention", spec)
        if known is None:
            return None
        return self._call(known, [qkv, *tail], norms, call, sizes)

    def _linear_of(self, qkv: relax.Expr) -> relax.Call | None:
        """Return the call of the fused linear whose reshaped result is `qkv`, or None."""
        call = self._bound(qkv)
        if not isinstance(call, relax.Call) or call.op != RESHAPE:
            return None
        element = self._bound(call.args[0])
        if isinstance(element, relax.TupleGetItem):
            element = self._bound(element.tuple_value)
        tagged = self._tag(element)
        return element if tagged is not None and tagged[0] == "fused_linear" else None

    def _table(
        self, arrays: tuple[relax.Expr, ...], spec: dict[str, Any], sizes: dict[str, Any]
    ) -> relax.Expr | None:
        known = self.answers.function("batch_table", spec)
        if known is None:
            return None
        if arrays not in self.tables:
            (ty,) = scratch_types(known[1], sizes)
            call = relax.call_tir(known[0], list(arrays), out_ty=ty)
            self.tables[arrays] = self.builder_.emit(call)
        return self.tables[arrays]

    def _call(
        self,
        known: tuple[ir.GlobalVar, Fused],
        args: list[relax.Expr],
        norms: list[relax.Expr],
        call: relax.Call,
        sizes: dict[str, Any],
    ) -> relax.Expr:
        var, kernel = known
        if norms and kernel.joined:
            args[-1 - len(norms) : -1] = [self._joined(norms)]
        types = [args[-1].ty, call.ty_args[0], *scratch_types(kernel, sizes)]
        places = [len(args) - 1] + [-1] * (len(types) - 1)
        results = self.builder_.emit(relax.call_tir_inplace(var, relax.Tuple(args), places, types))
        return relax.TupleGetItem(results, 1)

    def _joined(self, norms: list[relax.Expr]) -> relax.Var:
        size = int(norms[0].ty.shape[0])
        sources, offset = [], 0.0
        for norm in norms:
            call = self._bound(norm)
            tagged = self._tag(call)
            if call is not None and tagged is not None and tagged[0] == "offset":
                # The PrimFunc that joins the norms also adds the norm's offset to both.
                norm, offset = call.args[1].fields[0], json.loads(tagged[1])["offset"]
            sources.append(norm)
        key = size, offset
        if key not in self.joins:
            self.joins[key] = self.builder_.add_func(joined(size, offset), "join_norms")
        ty = relax.TensorType([2, size], norms[0].ty.dtype)
        return self.builder_.emit(relax.call_tir(self.joins[key], sources, out_ty=ty))


def joined(size: int, offset: float = 0.0) -> Any:
    """Return a PrimFunc (a [size], b [size]) -> [2, size] + offset, which runs once at load."""
    a, b = (te.placeholder((size,), "float32", name) for name in "ab")
    both = te.compute(
        (2, size),
        lambda i, k: te.if_then_else(i == 0, a[k], b[k]) + tirx.const(offset, "float32"),
        "both",
    )
    func = te.create_prim_func([a, b, both]).without_attr("global_symbol")
    return func.with_attrs({PACK: True, "op_pattern": OPAQUE})

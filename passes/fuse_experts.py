"""FuseExperts: add what a mixture of experts gives to the residual in its own kernel, where it can.

    h = expert_linear(g, ids, starts, slots, weights, W)      y = expert_linear(g, ..., W, r)
    y = R.add(r, h)

Runs in the fuse phase, before FuseNorm. The target is asked for "expert_linear" with `residual`; if
it has nothing, both stay.
"""

from __future__ import annotations

import json
from typing import Any

from tvm import IRModule, ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_equal

from wherry.tags import tag, tag_of

from .kernels import Fused, Kernels, is_tir_call, rewritten, with_scratch
from .uses import uses_of

ADD = ir.Op.get("relax.add")
OP = "expert_linear"


@ir.transform.module_pass(opt_level=0, name="FuseExperts")
class FuseExperts:
    """The pass; see the module's text."""

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
        self.kernels = kernels
        self.answers: dict[str, tuple[ir.GlobalVar, Fused] | None] = {}  # by spec
        self.uses: dict[relax.Var, int] = {}

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        self.uses = uses_of(func)
        return super().visit_function_(func)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        found = self._fused(binding.value)
        if found is None:
            super().visit_var_binding_(binding)
            return
        value = self.builder_.normalize(found)
        var = self.visit_var_def(binding.var)  # of the same kind, which outputs need
        self.builder_.emit_normalized(relax.VarBinding(var, value))

    def _fused(self, call: relax.Expr) -> relax.Expr | None:
        if not isinstance(call, relax.Call) or call.op != ADD:
            return None
        for h, residual in (call.args[::-1], call.args):
            if not isinstance(h, relax.Var) or self.uses.get(h, 0) != 1:
                continue
            before = self.visit_expr(h)
            linear = self.lookup_binding(before) if isinstance(before, relax.Var) else None
            spec = self._combined(linear)
            if linear is None or spec is None or not structural_equal(residual.ty, h.ty):
                continue
            known = self._answer(json.dumps(spec | {"residual": True}, sort_keys=True))
            if known is not None:
                args = [*linear.args[1].fields, self.visit_expr(residual)]
                sizes = {"n": h.ty.shape[0]}
                return with_scratch(self.builder_, *known, args, h.ty, sizes)
        return None

    def _combined(self, call: relax.Expr | None) -> dict[str, Any] | None:
        """The spec, if `call` adds up the experts of rows."""
        if not isinstance(call, relax.Call) or not is_tir_call(call):
            return None
        tagged = tag_of(self.mod[call.args[0]])
        if tagged is None or tagged[0] != OP:
            return None
        spec: dict[str, Any] = json.loads(tagged[1])
        return spec if spec["combined"] and not spec["residual"] else None

    def _answer(self, spec: str) -> tuple[ir.GlobalVar, Fused] | None:
        if spec not in self.answers:
            kernel = self.kernels.kernel(OP, spec)
            self.answers[spec] = (
                None
                if kernel is None
                else (self.builder_.add_func(tag(kernel.compute, OP, json.loads(spec)), OP), kernel)
            )
        return self.answers[spec]

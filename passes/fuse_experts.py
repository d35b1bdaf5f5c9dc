"""FuseExperts: add the residual in the kernel of a mixture of experts, if the target has one.

    h = expert_linear(g, ids, starts, slots, weights, W)      y = expert_linear(g, ..., W, r)
    y = R.add(r, h)

Runs in the fuse phase, before FuseNorm. The target is asked for "expert_linear" with `residual`;
without a kernel both calls stay. If the kernel has a weight layout of its own, this pass replaces
every linear of experts by the kernel, because NarrowActivations looks at kernels; another call
packs the weights, as in FuseLinear.
"""

from __future__ import annotations

import json
from typing import Any

from tvm import IRModule, ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_equal

from wherry.ops.tags import tag_of

from .kernels import Answers, Kernels, Packings, is_tir_call, rewritten, sizes_of, with_scratch
from .uses import uses_of

ADD = ir.Op.get("relax.add")
OP = "expert_linear"


@ir.transform.module_pass(opt_level=0, name="FuseExperts")
class FuseExperts:
    """Pass that fuses the residual addition into the kernel of a mixture of experts."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        return rewritten(mod, _Rewriter(mod, self.kernels))


class _Linear:
    """An expert linear of the rewritten function: its variable, spec and arguments."""

    def __init__(self, spec: dict[str, Any], args: list[relax.Expr]) -> None:
        self.spec = spec
        self.args = args  # x, the routing arrays, the stored weights


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, kernels: Kernels) -> None:
        super().__init__(mod)
        self.mod = mod
        # result variable -> the expert linear that computes it
        self.linears: dict[relax.Var, _Linear] = {}
        self.answers = Answers(self.builder_, kernels)
        self.uses: dict[relax.Var, int] = {}
        self.packings = Packings(self.builder_)

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        self.uses = uses_of(func)
        return super().visit_function_(func)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        call = binding.value
        linear = self._linear(call)
        added = isinstance(call, relax.Call) and call.op == ADD
        value = self._added(call) if added else linear and self._packed(linear, call.ty_args[0])
        if value is None:
            super().visit_var_binding_(binding)
            var = self.visit_expr(binding.var) if linear else None
        else:
            value = self.builder_.normalize(value)
            # an output variable must be rebound to one of the same class
            var = self.visit_var_def(binding.var)
            self.builder_.emit_normalized(relax.VarBinding(var, value))
        if linear and self.uses.get(binding.var, 0) == 1:
            self.linears[var] = linear

    def _linear(self, call: relax.Expr) -> _Linear | None:
        tagged = tag_of(self.mod[call.args[0]]) if is_tir_call(call) else None
        if tagged is None or tagged[0] != OP:
            return None
        return _Linear(json.loads(tagged[1]), [self.visit_expr(a) for a in call.args[1].fields])

    def _packed(self, linear: _Linear, ty: relax.TensorType) -> relax.Expr | None:
        """Return the call of the target's kernel with packed weights; None: it packs nothing."""
        kernel = self.answers.kernel(OP, linear.spec)
        if getattr(kernel, "scratch", None) is None or kernel.pack is None:
            return None
        return self._call(linear, [], ty)

    def _added(self, call: relax.Call) -> relax.Expr | None:
        left, right = (self.visit_expr(a) for a in call.args)
        for h, residual in ((right, left), (left, right)):
            linear = self.linears.get(h)
            if linear is None or not linear.spec["combined"] or linear.spec["residual"]:
                continue
            if not structural_equal(residual.ty, h.ty):
                continue
            summed = _Linear(linear.spec | {"residual": True}, linear.args)
            kernel_call = self._call(summed, [residual], h.ty)
            if kernel_call is not None:
                return kernel_call
        return None

    def _call(
        self, linear: _Linear, more: list[relax.Expr], ty: relax.TensorType
    ) -> relax.Expr | None:
        """Return the kernel call that computes `linear`; None: the target has no such kernel.

        `more` are arguments after the weights, such as the residual.
        """
        known = self.answers.function(OP, linear.spec)
        if known is None:
            return None
        (var, kernel), args = known, linear.args
        if kernel.pack is not None:
            stored = args[kernel.inputs :]
            args = [*args[: kernel.inputs], *self.packings.packed(kernel, stored)]
        sizes = sizes_of(args[0], ty)
        return with_scratch(self.builder_, var, kernel, [*args, *more], ty, sizes)

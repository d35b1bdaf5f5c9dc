"""FuseLinear: fuse a norm before a linear, and SwiGLU or an addition after it, where a target can.

    z = R.nn.rms_norm(x, w)                      y = fused_linear(x, w, W)
    y = linear(z, W)

    h = linear(z, W)                             y = fused_linear(z, W)
    y = swiglu(h)

    h = linear(z, W)                             y = fused_linear(z, W, r)
    y = R.add(r, h)

Runs in the fuse phase, after FuseSwiGLU and before FuseNorm, which names the remaining norms. The
target is asked for "fused_linear" with the spec of the linear, and `norm_eps`, `gated` and
`residual`; without a kernel nothing changes. Scratch memory of the kernel becomes unused outputs of
the call. If the kernel has a weight layout of its own, another call packs the weights;
SelectKernels moves it out of the step.
"""

from __future__ import annotations

import json
from typing import Any

from tvm import IRModule, ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm_ffi import structural_equal

from wherry.ops.tags import tag_of

from .kernels import Answers, Kernels, Packings, is_tir_call, rewritten, with_scratch
from .uses import uses_of

RMS_NORM = ir.Op.get("relax.nn.rms_norm")
ADD = ir.Op.get("relax.add")


@ir.transform.module_pass(opt_level=0, name="FuseLinear")
class FuseLinear:
    """Pass that fuses linears with a norm before and SwiGLU or a residual addition after them."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of `mod`."""
        return rewritten(mod, _Rewriter(mod, self.kernels))


class _Linear:
    """A linear call, and the operations fused into it up to this binding."""

    def __init__(self, spec: dict[str, Any], x: relax.Expr, weights: list[relax.Expr]) -> None:
        self.spec = spec
        self.x = x
        self.weights = weights
        self.norm: relax.Expr | None = None
        self.residual: relax.Expr | None = None

    def args(self, weights: list[relax.Expr]) -> list[relax.Expr]:
        """Return the arguments in the order of the kernel's parameters, which read `weights`."""
        norm = [] if self.norm is None else [self.norm]
        residual = [] if self.residual is None else [self.residual]
        return [self.x, *norm, *weights, *residual]


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, kernels: Kernels) -> None:
        super().__init__(mod)
        self.mod = mod
        # result variable -> the linear that computes it
        self.linears: dict[relax.Var, _Linear] = {}
        self.answers = Answers(self.builder_, kernels)
        self.uses: dict[relax.Var, int] = {}
        self.packings = Packings(self.builder_)

    def visit_function_(self, func: relax.Function) -> relax.Expr:
        self.uses = uses_of(func)
        return super().visit_function_(func)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        fused = self._fused(binding)
        if fused is None:
            super().visit_var_binding_(binding)
            return
        linear, value = fused
        value = self.builder_.normalize(value)
        # an output variable must be rebound to one of the same class
        var = self.visit_var_def(binding.var)
        self.builder_.emit_normalized(relax.VarBinding(var, value))
        if self.uses.get(binding.var, 0) == 1:
            self.linears[var] = linear

    def _fused(self, binding: relax.VarBinding) -> tuple[_Linear, relax.Expr] | None:
        call = binding.value
        if not isinstance(call, relax.Call):
            return None
        if call.op == ADD:
            return self._with_residual(call)
        tagged = tag_of(self.mod[call.args[0]]) if is_tir_call(call) else None
        if tagged is None:
            return None
        args = [self.visit_expr(a) for a in call.args[1].fields]
        if tagged[0] == "linear":
            return self._linear(json.loads(tagged[1]), args, call.ty_args[0])
        if tagged[0] == "swiglu":
            return self._gated(args[0], call.ty_args[0])
        return None

    def _linear(
        self, spec: dict[str, Any], args: list[relax.Expr], ty: Any
    ) -> tuple[_Linear, relax.Expr] | None:
        spec = spec | {"norm_eps": None, "gated": False, "residual": False}
        plain = _Linear(spec, args[0], args[1:])
        norm = self.lookup_binding(args[0]) if isinstance(args[0], relax.Var) else None
        if isinstance(norm, relax.Call) and norm.op == RMS_NORM:
            linear = _Linear(spec | {"norm_eps": float(norm.attrs.epsilon)}, norm.args[0], args[1:])
            linear.norm = norm.args[1]
            value = self._call(linear, ty)
            if value is not None:
                return linear, value
        value = self._call(plain, ty)
        return None if value is None else (plain, value)

    def _gated(self, x: relax.Expr, ty: Any) -> tuple[_Linear, relax.Expr] | None:
        linear = self.linears.get(x)
        if linear is None or linear.spec["gated"] or linear.residual is not None:
            return None
        gated = _Linear(linear.spec | {"gated": True}, linear.x, linear.weights)
        gated.norm = linear.norm
        value = self._call(gated, ty)
        return None if value is None else (gated, value)

    def _with_residual(self, call: relax.Call) -> tuple[_Linear, relax.Expr] | None:
        left, right = (self.visit_expr(a) for a in call.args)
        for h, residual in ((right, left), (left, right)):
            linear = self.linears.get(h)
            if linear is None or linear.residual is not None:
                continue
            if not structural_equal(residual.ty, h.ty):
                continue
            summed = _Linear(linear.spec | {"residual": True}, linear.x, linear.weights)
            summed.norm, summed.residual = linear.norm, residual
            value = self._call(summed, h.ty)
            if value is not None:
                return summed, value
        return None

    def _call(self, linear: _Linear, ty: Any) -> relax.Expr | None:
        """Return the kernel call that computes `linear`; None: the target has no such kernel."""
        floats = {"x_dtype": str(linear.x.ty.dtype), "y_dtype": str(ty.dtype)}
        known = self.answers.function("fused_linear", linear.spec | floats)
        if known is None:
            return None
        var, kernel = known
        args = linear.args(self.packings.packed(kernel, linear.weights))
        return with_scratch(self.builder_, var, kernel, args, ty, {"m": ty.shape[0]})

"""CaptureLinears: give the inputs of linear layers to a function of the caller.

    def forward(x, w):                       def forward(x, w):
      t = R.permute_dims(w)                    y = call_dps_packed("wherry.captured", ("w", x))
      y = R.matmul(x, t)

Experts give the slots' results, before the bias, the gate and the sum over a row's experts, which
the module computes:

    y = expert_linear(x, ids, ...)             y = call_dps_packed("wherry.captured", ("w", x, ids))

Runs before all phases, over a float model. The function computes y from x, so the module needs no
weights of these layers: calibration reads them one at a time (compiler/calibration/).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from tvm import IRModule, ir, relax, te, tirx
from tvm.ir import StringImm
from tvm.relax.expr_functor import PyExprMutator, mutator

from wherry.ops.tags import tag_of

from .kernels import is_tir_call, rewritten

# (name of the weight, x [n, in], y [n, out]) -> nothing; of experts (name, x [n or n * k, in], ids
# int32 [n, k], y [n * k, out]), or without ids where slot i has expert i % experts.
CAPTURED = "wherry.captured"
Gate = Callable[[str, str], tirx.PrimFunc]  # as `References.expert_gate`
_PERMUTE, _MATMUL = (ir.Op.get(f"relax.{name}") for name in ("permute_dims", "matmul"))


@ir.transform.module_pass(opt_level=0, name="CaptureLinears")
class CaptureLinears:
    """Pass that replaces each product with the transpose of a weight by a call of `CAPTURED`.

    Args:
        weights: names of the weights.
        gate: makes the PrimFunc of the gate of experts.
    """

    def __init__(self, weights: Collection[str], gate: Gate) -> None:
        self.weights, self.gate = frozenset(weights), gate

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite `forward`."""
        return rewritten(mod, _Rewriter(mod, self.weights, self.gate))


def linears(mod: IRModule) -> list[str]:
    """Return the weights that only linear layers of `forward` read, in the order of the layers."""
    func = mod["forward"]
    params = set(func.params[int(func.attrs["num_input"]) :])
    transposed: dict[relax.Var, relax.Var] = {}
    names: dict[str, None] = {}
    others: set[str] = set()
    for block in func.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and call.op == _PERMUTE and call.args[0] in params:
                transposed[binding.var] = call.args[0]
            elif isinstance(call, relax.Call) and call.op == _MATMUL and call.args[1] in transposed:
                names[transposed[call.args[1]].name] = None
            elif experts := _experts(mod, call):
                names[experts[1][-1].name] = None
                others |= {v.name for v in experts[1][:-1]}
            else:
                read = relax.analysis.free_vars(call) if isinstance(call, relax.Expr) else []
                others |= {transposed.get(v, v).name for v in read if isinstance(v, relax.Var)}
    return [name for name in names if name not in others]


def _experts(mod: IRModule, call: relax.Expr) -> tuple[str, list[relax.Var]] | None:
    """Return the spec and the arguments of an expert linear, the weight last; None: another."""
    tagged = tag_of(mod[call.args[0]]) if is_tir_call(call) else None
    if tagged is None or tagged[0] != "expert_linear":
        return None
    return tagged[1], list(call.args[1].fields)


def _plus_bias(y: te.Tensor, ids: te.Tensor, bias: te.Tensor) -> te.Tensor:
    """Add the bias [experts, out] of each slot's expert, ids [n, k], to y [n * k, out]."""
    k = ids.shape[1]
    return te.compute(y.shape, lambda s, o: y[s, o] + bias[ids[s // k, s % k], o], "plus_bias")


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, weights: frozenset[str], gate: Gate) -> None:
        super().__init__(mod)
        self.mod, self.weights, self.gate = mod, weights, gate
        self.transposed: dict[relax.Var, relax.Var] = {}  # transposed variable -> weight

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        value = binding.value
        if isinstance(value, relax.Call) and value.op == _PERMUTE:
            read = value.args[0]
            if isinstance(read, relax.Var) and read.name in self.weights:
                self.transposed[binding.var] = read
                return
        super().visit_var_binding_(binding)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if (experts := _experts(self.mod, call)) and experts[1][-1].name in self.weights:
            spec, args = experts
            return self._experts(spec, args[-1], [self.visit_expr(a) for a in args[:-1]], call)
        if call.op != _MATMUL or call.args[1] not in self.transposed:
            return super().visit_call_(call)
        weight, x = self.transposed[call.args[1]], self.visit_expr(call.args[0])
        rows = [*x.ty.shape][:-1]
        ty = relax.TensorType([*rows, weight.ty.shape[0]], x.ty.dtype)
        return relax.call_dps_packed(CAPTURED, relax.Tuple([StringImm(weight.name), x]), ty)

    def _experts(
        self, text: str, weight: relax.Var, args: list[relax.Expr], call: relax.Call
    ) -> relax.Expr:
        """Return the result of an expert linear with arguments before its weight."""
        spec, x = json.loads(text), args[0]
        routed, combined = spec["routed"], spec["combined"]
        slots = x.ty.shape[0] * (spec["top_k"] if routed and not combined else 1)
        ty = relax.TensorType([slots, weight.ty.shape[1]], x.ty.dtype)
        given = [StringImm(weight.name), x, *([args[1]] if routed else [])]
        y = self.builder_.emit(relax.call_dps_packed(CAPTURED, relax.Tuple(given), ty))
        if spec["bias"]:
            y = self.builder_.emit(self.builder_.call_te(_plus_bias, y, args[1], args[-1]))
        if spec["gate"]:
            gate = self.builder_.add_func(self.gate(text, str(ty.dtype)), "expert_gate")
            return relax.call_tir(gate, [y], out_ty=call.ty_args[0])
        if not combined:
            return y
        shares = relax.op.expand_dims(args[4], -1)
        each = relax.op.reshape(y, (*args[4].ty.shape, spec["out_features"]))
        return relax.op.sum(relax.op.multiply(each, shares), axis=1)

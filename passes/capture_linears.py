"""CaptureLinears: give the inputs of linear layers to a function of the caller.

    def forward(x, w):                       def forward(x, w):
      t = R.permute_dims(w)                    y = call_dps_packed("wherry.captured", ("w", x))
      y = R.matmul(x, t)

Runs before all phases, over a float model. The function computes y from x, so the module needs no
weights of these layers: calibration reads them one at a time (compiler/calibration/).
"""

from __future__ import annotations

from collections.abc import Collection

from tvm import IRModule, ir, relax
from tvm.ir import StringImm
from tvm.relax.expr_functor import PyExprMutator, mutator

from .kernels import rewritten

CAPTURED = "wherry.captured"  # (name of the weight, x [n, in], y [n, out]) -> nothing
_PERMUTE, _MATMUL = (ir.Op.get(f"relax.{name}") for name in ("permute_dims", "matmul"))


@ir.transform.module_pass(opt_level=0, name="CaptureLinears")
class CaptureLinears:
    """Pass that replaces each product with the transpose of a weight by a call of `CAPTURED`.

    Args:
        weights: names of the weights.
    """

    def __init__(self, weights: Collection[str]) -> None:
        self.weights = frozenset(weights)

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite `forward`."""
        return rewritten(mod, _Rewriter(mod, self.weights))


def linears(mod: IRModule) -> list[str]:
    """Return the weights that only linear layers of `forward` read, in the order of the layers."""
    func = mod["forward"]
    params = set(func.params[int(func.attrs["num_input"]) :])
    transposed: dict[relax.Var, relax.Var] = {}
    found: dict[str, None] = {}
    others: set[str] = set()
    for block in func.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and call.op == _PERMUTE and call.args[0] in params:
                transposed[binding.var] = call.args[0]
            elif isinstance(call, relax.Call) and call.op == _MATMUL and call.args[1] in transposed:
                found[transposed[call.args[1]].name] = None
            else:
                read = relax.analysis.free_vars(call) if isinstance(call, relax.Expr) else []
                others |= {transposed.get(v, v).name for v in read if isinstance(v, relax.Var)}
    return [name for name in found if name not in others]


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, weights: frozenset[str]) -> None:
        super().__init__(mod)
        self.weights = weights
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
        if call.op != _MATMUL or call.args[1] not in self.transposed:
            return super().visit_call_(call)
        weight, x = self.transposed[call.args[1]], self.visit_expr(call.args[0])
        rows = [*x.ty.shape][:-1]
        ty = relax.TensorType([*rows, weight.ty.shape[0]], x.ty.dtype)
        return relax.call_dps_packed(CAPTURED, relax.Tuple([StringImm(weight.name), x]), ty)

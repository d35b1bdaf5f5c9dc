"""BoundResults: allocate the results of a function in memory of a fixed size.

    def forward(...):  # bounds: {"m": 64}                def forward(...):
                                                            place = alloc_storage((64 * 320 * 4,))
      y = builtin.alloc_tensor((m, 320), "float32")         y = alloc_tensor(place, 0, (m, 320))
      kernel(x, y)                                          kernel(x, y)
      return y                                              return y

Runs in the link phase after the planner, which places intermediate tensors and leaves results to be
allocated by their size. TVM's pooled allocator keeps a freed buffer of every size that it ever saw:
with a size for each number of rows, logits of a large vocabulary would fill the memory. With one
size there is one buffer, and the memory of a step is known before it runs.
"""

from __future__ import annotations

from math import prod

from tvm import DataType, IRModule, ir, relax, sym, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.relax.op import memory

ALLOC = ir.Op.get("relax.builtin.alloc_tensor")
BOUNDS = "tir_var_upper_bound"  # attribute that the pass AttachBounds sets


@ir.transform.module_pass(opt_level=0, name="BoundResults")
class BoundResults:
    """Pass that allocates the results of functions in storage of a fixed size."""

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function whose symbolic sizes have bounds."""
        for var, func in mod.functions_items():
            if isinstance(func, relax.Function) and BOUNDS in (func.attrs or {}):
                bounds = {str(name): int(most) for name, most in func.attrs[BOUNDS].items()}
                mod.update_func(var, _Rewriter(mod, bounds).visit_expr(func))
        return mod


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, bounds: dict[str, int]) -> None:
        super().__init__(mod)
        self.bounds = bounds

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        if not call.op.same_as(ALLOC) or not isinstance(call.args[0], relax.ShapeExpr):
            return call
        shape, dtype, device, scope = call.args
        sizes = [self._most(size) for size in shape.values]
        if all(isinstance(size, tirx.IntImm) for size in shape.values) or None in sizes:
            return call
        count = prod(size for size in sizes if size is not None)
        nbytes = count * DataType(dtype.value).itemsize
        place = memory.alloc_storage(relax.ShapeExpr([nbytes]), device, scope, "uint8")
        storage = self.builder_.emit(place, "storage")
        return memory.alloc_tensor(storage, 0, shape, dtype, device)

    def _most(self, size: tirx.PrimExpr) -> int | None:
        """Return the upper bound of a symbolic size; None: a variable in it has no bound."""
        analyzer = sym.Analyzer()
        for var in tirx.analysis.undefined_vars(size):
            if var.name not in self.bounds:
                return None
            analyzer.bind(var, ir.Range(0, self.bounds[var.name] + 1))
        return int(analyzer.const_int_bound(size).max_value)

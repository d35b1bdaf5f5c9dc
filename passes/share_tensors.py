"""ShareTensors: create each tensor object of the memory plan once, not once a layer.

    a = alloc_tensor(storage, 0, (n, 64))          a = alloc_tensor(storage, 0, (n, 64))
    kernel(x, a)                                   kernel(x, a)
    b = alloc_tensor(storage, 0, (n, 64))          kernel(y, a)
    kernel(y, b)                                   z = reshape(a, (n, 8, 8))
    z = reshape(b, (n, 8, 8))                      kernel(z, ...)
    w = reshape(b, (n, 8, 8))                      kernel(z, ...)
    kernel(z, ...)  kernel(w, ...)

Runs in the link phase, after the memory planner and before the virtual machine's calls are emitted.
Two tensors with the same storage, shape and dtype are the same bytes, so they can share one object,
and views of them one view. On a CPU these calls are a fifth of a small model's step. What the
function returns is always an object of its own.
"""

from __future__ import annotations

from collections.abc import Hashable

from tvm import IRModule, ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator

ALLOC, RESHAPE = (ir.Op.get(f"relax.{name}") for name in ("memory.alloc_tensor", "reshape"))


@ir.transform.module_pass(opt_level=0, name="ShareTensors")
class ShareTensors:
    """Pass that creates each tensor object of the memory plan once and shares it between layers."""

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rewrite every Relax function of one block."""
        for var, func in mod.functions_items():
            if isinstance(func, relax.Function) and len(func.body.blocks) == 1:
                mod.update_func(var, _Rewriter(mod, func).visit_expr(func))
        return mod


@mutator
class _Rewriter(PyExprMutator):
    def __init__(self, mod: IRModule, func: relax.Function) -> None:
        super().__init__(mod)
        self.returned = func.body.body  # results are not shared: the caller may retain them
        self.known: dict[Hashable, relax.Var] = {}

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, relax.TupleGetItem):
            value = self._element(value)
        key = self._key(value)
        shared = value if isinstance(value, relax.Var) else self.known.get(key)
        if shared is not None and not binding.var.same_as(self.returned):
            self.set_var_remap(binding.var, shared)
            return
        var = self.visit_var_def(binding.var)
        self.builder_.emit_normalized(relax.VarBinding(var, value))
        if key is not None:
            self.known.setdefault(key, var)

    def _element(self, value: relax.TupleGetItem) -> relax.Expr:
        """Return the tuple's field itself if this function built the tuple; else `value`."""
        bound = self.lookup_binding(value.tuple_value)
        return bound.fields[value.index] if isinstance(bound, relax.Tuple) else value

    def _key(self, value: relax.Expr) -> Hashable | None:
        """Return a key that is equal for calls with the same result; None for other calls."""
        if not isinstance(value, relax.Call) or value.op not in (ALLOC, RESHAPE):
            return None
        source = value.args[0]
        if not isinstance(source, relax.Var):
            return None
        rest = tuple(str(a) for a in value.args[1:])
        return (value.op.name, source, rest)

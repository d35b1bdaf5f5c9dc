"""Pass that puts a prefix before the names of all kernels.

A program may have several libraries linked in, whose kernels are symbols of one namespace:
`reshape` of a model for the CPU, and of the same model for OpenCL. TVM's AttachGlobalSymbol adds a
module's `system_lib_prefix`, too, but fails on kernels with calls in statements.

Before (prefix "wherry_1_"):

    call_tir(cls.reshape, (x,), ...)

After:

    call_tir(cls.wherry_1_reshape, (x,), ...)
"""

from __future__ import annotations

from tvm import IRModule, ir, relax
from tvm.ir import GlobalVar
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.tirx import PrimFunc


@ir.transform.module_pass(opt_level=0, name="PrefixKernels")
class PrefixKernels:
    """Pass that renames PrimFuncs and the calls of them."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Rename all PrimFuncs."""
        renamed = {
            var: GlobalVar(self.prefix + var.name_hint)
            for var, func in mod.functions_items()
            if isinstance(func, PrimFunc)
        }
        for var, new in renamed.items():
            relax.expr._update_type(new, var.ty)
        calls = _Calls(mod, {var.name_hint: new for var, new in renamed.items()})
        functions = {
            renamed.get(var, var): _named(func, renamed[var])
            if var in renamed
            else calls.visit_expr(func)
            for var, func in mod.functions_items()
        }
        return IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _named(func: PrimFunc, var: GlobalVar) -> PrimFunc:
    has_name = func.attrs and "global_symbol" in func.attrs
    return func.with_attr("global_symbol", var.name_hint) if has_name else func


@mutator
class _Calls(PyExprMutator):
    """Mutator that replaces the variables of kernels, by name."""

    def __init__(self, mod: IRModule, renamed: dict[str, GlobalVar]) -> None:
        super().__init__(mod)
        self.renamed = renamed

    def visit_global_var_(self, var: GlobalVar) -> GlobalVar:
        return self.renamed.get(var.name_hint, var)

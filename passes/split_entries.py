"""SplitEntries: a function for each result of `forward`.

    def forward(x, w):                        def forward(x, w):
      a = call_tir(f, (x,))                     a = call_tir(f, (x,))
      y = call_tir(g, (a, w))                   y = call_tir(g, (a, w))
      z = call_tir(h, (a,))                     return y
      return (y, z)
                                              def embed(x, w):
                                                a = call_tir(f, (x,))
                                                z = call_tir(h, (a,))
                                                return z

Runs in the link phase, after ToNonDataflow: the earlier, expensive passes visit the layers once for
all entries, and the entries call the same kernels. Each entry has all parameters, because all are
called with the same arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import IRModule, ir, relax
from tvm.relax.utils import copy_with_new_vars


@ir.transform.module_pass(opt_level=0, name="SplitEntries")
class SplitEntries:
    """Pass that makes one function for each result of `forward`.

    Args:
        entries: names of the results, in order.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = tuple(entries)

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Replace `forward` by one function per entry."""
        if self.entries == ("forward",):
            return mod
        mod = mod.clone()  # a copy, because the caller's module must not change
        (var,) = [v for v in mod.get_global_vars() if v.name_hint == "forward"]
        forward = mod[var]
        results = _results(forward, len(self.entries))
        del mod[var]
        builder = relax.BlockBuilder(mod)
        for entry, result in zip(self.entries, results, strict=True):
            builder.add_func(_returning(forward, result, entry), entry)
        return builder.get()


def _results(func: relax.Function, count: int) -> list[relax.Expr]:
    """Return the results of `func` as a list of expressions."""
    result = func.body.body
    if count == 1:
        return [result]
    bound = {b.var: b.value for block in func.body.blocks for b in block.bindings}
    value = bound.get(result, result)
    assert isinstance(value, relax.Tuple) and len(value.fields) == count
    return list(value.fields)


def _returning(func: relax.Function, result: relax.Expr, name: str) -> relax.Function:
    """Return a copy of `func` with one result, without bindings that only other results need."""
    body = relax.SeqExpr(func.body.blocks, result)
    entry_func = relax.Function(func.params, body, result.ty, func.is_pure, func.attrs)
    entry_func = relax.analysis.remove_all_unused(copy_with_new_vars(entry_func))
    return entry_func.with_attr("global_symbol", name)

"""Counts the uses of variables."""

from __future__ import annotations

from tvm import relax


def uses_of(func: relax.Function) -> dict[relax.Var, int]:
    """Count how often each variable of `func` is read."""
    uses: dict[relax.Var, int] = {}

    def count(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Var):
            uses[expr] = uses.get(expr, 0) + 1

    for block in func.body.blocks:
        for binding in block.bindings:
            relax.analysis.post_order_visit(binding.value, count)
    relax.analysis.post_order_visit(func.body.body, count)
    return uses

"""AttachBounds: tell the memory planner how large the symbolic sizes of `forward` can be.

    def forward(tokens[n], ...)               def forward(tokens[n], ...)
                                                attr tir_var_upper_bound = {"n": 512, "m": 64, ...}

With a bound on every size that an intermediate tensor has, the planner gives each a fixed place,
and a step allocates nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import IRModule, ir, relax


@ir.transform.module_pass(opt_level=0, name="AttachBounds")
class AttachBounds:
    """Pass that attaches upper bounds of the symbolic sizes to `forward`."""

    def __init__(self, bounds: Mapping[str, int]) -> None:
        self.bounds = dict(bounds)

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Attach the bounds to every Relax function that takes inputs."""
        for var, func in mod.functions_items():
            if isinstance(func, relax.Function) and var.name_hint == "forward":
                mod.update_func(var, func.with_attr("tir_var_upper_bound", self.bounds))
        return mod

"""ScheduleRest: let the target schedule every PrimFunc that has no schedule yet.

Runs in the schedule phase. A PrimFunc marked `tirx.is_scheduled` is left alone.
"""

from __future__ import annotations

from tvm import IRModule, ir, tirx

from .kernels import Kernels

IS_SCHEDULED = "tirx.is_scheduled"


@ir.transform.module_pass(opt_level=0, name="ScheduleRest")
class ScheduleRest:
    """Pass that lets the target schedule every PrimFunc without a schedule."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels

    def transform_module(self, mod: IRModule, _ctx: ir.transform.PassContext) -> IRModule:
        """Schedule the remaining PrimFuncs."""
        for var, func in mod.functions_items():
            if isinstance(func, tirx.PrimFunc) and IS_SCHEDULED not in (func.attrs or {}):
                mod.update_func(var, self.kernels.schedule(func).with_attr(IS_SCHEDULED, True))
        return mod

"""Schedules GPU PrimFuncs without a hand-written kernel, by TVM's default rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm
from tvm.s_tir import dlight
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.errors import WherryError


def schedule(func: PrimFunc, device: Mapping[str, Any]) -> PrimFunc:
    """Bind the loops of `func` to blocks and threads.

    Args:
        func: an element-wise PrimFunc, or a small reduction.
        device: the target that it is compiled for, as TVM's dict.

    Raises:
        WherryError: no rule fits; without a schedule the host would read device memory.
    """
    if func.attrs and func.attrs.get("tirx.is_scheduled"):
        return func
    rules = (dlight.gpu.Reduction(), dlight.gpu.GeneralReduction(), dlight.gpu.Fallback())
    with Target(dict(device)):
        mod = dlight.ApplyDefaultSchedule(*rules)(tvm.IRModule({"main": func}))
    scheduled: PrimFunc = mod["main"]
    if not (scheduled.attrs and scheduled.attrs.get("tirx.is_scheduled")):
        raise WherryError(f"No GPU schedule fits this function:\n{func.script()}")
    return scheduled

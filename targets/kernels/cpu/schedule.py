"""Schedules CPU PrimFuncs without a hand-written kernel: element-wise ones and small reductions."""

from __future__ import annotations

import logging
import math

import tvm
from tvm import s_tir
from tvm.tirx import IntImm, IterVar, PrimFunc

_log = logging.getLogger(__name__)

LANES = 16
# about 20 us of a simple loop; with fewer elements, parallel threads do not pay
PARALLEL_ELEMENTS = 100_000


def schedule(func: PrimFunc) -> PrimFunc:
    """Inline, fuse and vectorize the loops of a PrimFunc; run large ones in parallel.

    A PrimFunc that already has a schedule, or whose blocks the schedule primitives reject, is
    returned unchanged.
    """
    if func.attrs and func.attrs.get("tirx.is_scheduled"):
        return func
    try:
        return _scheduled(func)
    except (s_tir.ScheduleError, tvm.error.InternalError, ValueError) as e:
        _log.debug("left unscheduled: %s", e)
        return func


def _scheduled(func: PrimFunc) -> PrimFunc:
    sch = s_tir.Schedule(tvm.IRModule({"main": func}))
    _inline(sch)
    for block in sch.get_child_blocks(sch.get_sblock("root")):
        _schedule_block(sch, block)
    return sch.mod["main"].with_attr("tirx.is_scheduled", True)


def _inline(sch: s_tir.Schedule) -> None:
    for block in sch.get_child_blocks(sch.get_sblock("root")):
        try:
            sch.compute_inline(block)
        except s_tir.ScheduleError:
            continue  # TVM cannot inline output blocks and reductions


def _schedule_block(sch: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> None:
    loops = sch.get_loops(block)
    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    if len(loops) != len(kinds) or not loops or kinds[0] != IterVar.DataPar:
        return
    extents = [sch.get(loop).extent for loop in loops]
    static = all(isinstance(extent, IntImm) for extent in extents)
    work = math.prod(int(extent) for extent in extents) if static else 0
    outer = loops[0]
    if all(kind == IterVar.DataPar for kind in kinds):
        # A loop of symbolic extent is not fused: its index would be divided again for every
        # element.
        inner = sch.fuse(*loops) if static else loops[-1]
        extent = sch.get(inner).extent
        outer = inner if static or len(loops) == 1 else outer
        if isinstance(extent, IntImm) and int(extent) % LANES == 0:
            rest, lanes = sch.split(inner, [None, LANES])
            sch.vectorize(lanes)
            outer = rest if static or len(loops) == 1 else outer
    if work >= PARALLEL_ELEMENTS:
        sch.parallel(outer)

"""A schedule for what no kernel covers: elementwise PrimFuncs and small reductions."""

from __future__ import annotations

import logging

import tvm
from tvm import s_tir
from tvm.tirx import IntImm, PrimFunc

_log = logging.getLogger(__name__)

LANES = 16
PARALLEL_ELEMENTS = 100_000  # about 20 us of a simple loop: below, a launch does not pay


def schedule(func: PrimFunc) -> PrimFunc:
    """Inline, fuse, vectorise and, above a size, run in parallel.

    A PrimFunc that is scheduled already, or has a block that the primitives refuse, comes back
    unchanged.
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
            continue  # an output, or a reduction


def _schedule_block(sch: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> None:
    loops = sch.get_loops(block)
    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    spatial = 0
    while spatial < min(len(kinds), len(loops)) and kinds[spatial] == 0:
        spatial += 1
    if spatial == 0 or len(loops) != len(kinds):
        return
    fused = sch.fuse(*loops[:spatial])
    extent = sch.get(fused).extent
    pure = spatial == len(loops)
    if pure and isinstance(extent, IntImm) and int(extent) % LANES == 0:
        fused, lanes = sch.split(fused, [None, LANES])
        sch.vectorize(lanes)
    work = 1
    for loop in [fused, *loops[spatial:]]:
        size = sch.get(loop).extent
        work *= int(size) if isinstance(size, IntImm) else 1
    if work * (LANES if pure else 1) >= PARALLEL_ELEMENTS:
        sch.parallel(fused)

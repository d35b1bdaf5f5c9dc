"""Linear recurrences, on CPUs; `state_strip.py` walks their state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearRecurrenceSpec

from . import vector as v
from .isa import Isa
from .state_strip import StateStrip, walk


def linear_recurrence(spec: LinearRecurrenceSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.linear_recurrence`, for any number of channels."""

    def row(strip: StateStrip, row: Any) -> None:
        decays = [v.let(x) for x in strip.load(strip.b["decays"], row, 0)]
        values = [v.let(x) for x in strip.load(strip.b["x"], row, 0)]
        one = T.float32(1)
        out = strip.update(lambda _i: one, lambda _i: one, lambda _i, j: decays[j], values)
        strip.store(row, 0, out)

    return walk(spec.buffers(), spec.state_shape, isa, row)

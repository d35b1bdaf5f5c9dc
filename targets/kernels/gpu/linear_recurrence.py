"""Linear recurrences, on GPUs; `state_column.py` walks their state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearRecurrenceSpec

from .limits import GpuLimits
from .state_column import Column, walk


def linear_recurrence(spec: LinearRecurrenceSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.linear_recurrence`, for any number of channels."""

    def row(own: Column, row: Any) -> None:
        b, channel, one = own.b, own.column, T.float32(1)
        decay, x = b["decays"][row, channel], b["x"][row, channel]
        out = own.update(lambda _i: one, lambda _i: one, lambda _i: decay, x)
        T.buffer_store(b["out"], out, [row, channel])

    return walk(spec.buffers(), spec.state_shape, limits, row)

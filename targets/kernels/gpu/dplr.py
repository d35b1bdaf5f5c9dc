"""A transition that is diagonal plus low rank, on GPUs; `state_column.py` walks its state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import DplrSpec

from . import emit as e
from .limits import GpuLimits
from .state_column import Column, Element, walk


def dplr(spec: DplrSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.dplr`, for any sizes."""
    dk, dv, keys = spec.key_dim, spec.value_dim, spec.heads * spec.key_dim

    def row(own: Column, row: Any) -> None:
        rows, first = own.b["rows"], e.let(own.head * dk)

        def part(number: int) -> Element:
            return lambda i: rows[row, first + (number * keys + i)]

        r, decays, k, a, b = (part(number) for number in range(5))
        place = own.head * dv + own.column
        read = e.Variable(T.float32(0))
        with T.serial(dk) as i:
            read.set(e.fma(own.state(i), a(i), read.value))
        difference = e.let(read.value)
        value = e.let(rows[row, 5 * keys + place])
        out = own.update(k, r, decays, value, (b, difference))
        T.buffer_store(own.b["out"], out, [row, place])

    return walk(spec.buffers(), spec.state_shape, limits, row)

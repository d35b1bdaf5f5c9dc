"""A transition that is diagonal plus low rank, on CPUs; `state_strip.py` walks its state."""

from __future__ import annotations

from typing import Any

from tvm.tirx import PrimFunc

from wherry.ops import DplrSpec

from . import vector as v
from .isa import Isa
from .state_strip import Element, StateStrip, walk


def dplr(spec: DplrSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.dplr`, for any sizes."""
    dk, dv, keys = spec.key_dim, spec.value_dim, spec.heads * spec.key_dim

    def row(strip: StateStrip, row: Any) -> None:
        rows, first = strip.b["rows"], v.let(strip.head * dk)

        def part(number: int) -> Element:
            return lambda i: rows[row, first + (number * keys + i)]

        r, decays, k, a, b = (part(number) for number in range(5))
        values = [v.let(x) for x in strip.load(rows, row, 5 * keys + strip.head * dv)]
        read = strip.read(a)
        out = strip.update(k, r, lambda i, _j: strip.splat(decays(i)), values, (b, read))
        strip.store(row, strip.head * dv, out)

    return walk(spec.buffers(), spec.state_shape, isa, row)

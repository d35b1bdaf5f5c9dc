"""Mamba's state spaces, on CPUs; `state_strip.py` walks their state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import Mamba2Spec, MambaSpec

from . import vector as v
from .isa import Isa
from .state_strip import StateStrip, softplus, walk


def mamba(spec: MambaSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.mamba`, for any sizes."""
    d, fma = spec.state_dim, isa.fma

    def row(strip: StateStrip, row: Any) -> None:
        b, lanes = strip.b, strip.lanes
        steps = [softplus(v.let(x), lanes, fma) for x in strip.load(b["steps"], row, 0)]
        values = [v.let(x) for x in strip.load(b["x"], row, 0)]

        def decay(i: Any, j: int) -> Any:
            rate = b["constants"][i, v.span(strip.column + j * lanes, lanes)]
            return v.exp(rate * steps[j], lanes, fma)

        out = strip.update(
            lambda i: b["bc"][row, i],
            lambda i: b["bc"][row, d + i],
            decay,
            [v.let(x * step) for x, step in zip(values, steps, strict=True)],
        )
        skips = strip.load(b["constants"], d, 0)
        outputs = [
            v.fma(x, skip, total, lanes, fma)
            for x, skip, total in zip(values, skips, out, strict=True)
        ]
        strip.store(row, 0, outputs)

    return walk(spec.buffers(), spec.state_shape, isa, row)


def mamba2(spec: Mamba2Spec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.mamba2`, for any sizes."""
    p, state_dim, fma = spec.head_dim, spec.state_dim, isa.fma

    def row(strip: StateStrip, row: Any) -> None:
        b, head = strip.b, strip.head
        rate, bias, skip = (b["constants"][i, head] for i in range(3))
        x = v.let(b["steps"][row, head] + bias)
        step = softplus(x, 1, fma)
        if spec.least_step > 0:
            step = v.maximum(step, T.float32(spec.least_step))
        if spec.most_step is not None:
            step = T.min(step, T.float32(spec.most_step))
        step = v.let(step)
        decay = v.let(v.exp(rate * step, 1, fma))
        group = T.floordiv(head, spec.heads // spec.groups)
        k = v.let(spec.heads * p + group * state_dim)
        q = v.let(k + spec.groups * state_dim)
        values = [v.let(x) for x in strip.load(b["xbc"], row, head * p)]
        out = strip.update(
            lambda i: b["xbc"][row, k + i],
            lambda i: b["xbc"][row, q + i],
            lambda _i, _j: strip.splat(decay),
            [v.let(x * strip.splat(step)) for x in values],
        )
        outputs = [
            v.fma(x, strip.splat(skip), total, strip.lanes, fma)
            for x, total in zip(values, out, strict=True)
        ]
        strip.store(row, head * p, outputs)

    return walk(spec.buffers(), spec.state_shape, isa, row)

"""Mamba's state spaces, on GPUs; `state_column.py` walks their state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import Mamba2Spec, MambaSpec

from . import emit as e
from .limits import GpuLimits
from .state_column import Column, exp, softplus, walk


def mamba(spec: MambaSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.mamba`, for any sizes."""
    d = spec.state_dim

    def row(own: Column, row: Any) -> None:
        b, channel = own.b, own.column
        step = softplus(e.let(b["steps"][row, channel]))
        x = e.let(b["x"][row, channel])
        out = own.update(
            lambda i: b["bc"][row, i],
            lambda i: b["bc"][row, d + i],
            lambda i: exp(b["constants"][i, channel] * step),
            e.let(x * step),
        )
        T.buffer_store(b["out"], e.fma(x, b["constants"][d, channel], out), [row, channel])

    return walk(spec.buffers(), spec.state_shape, limits, row)


def mamba2(spec: Mamba2Spec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.mamba2`, for any sizes."""

    def row(own: Column, row: Any) -> None:
        b, head = own.b, own.head
        rate, bias, skip = (b["constants"][i, head] for i in range(3))
        step = softplus(e.let(b["steps"][row, head] + bias))
        if spec.least_step > 0:
            step = T.max(step, e.number(spec.least_step))
        if spec.most_step is not None:
            step = T.min(step, e.number(spec.most_step))
        step = e.let(step)
        decay = e.let(exp(rate * step))
        k = e.let(spec.inner + e.div(head, spec.heads // spec.groups) * spec.state_dim)
        q = e.let(k + spec.groups * spec.state_dim)
        place = e.let(head * spec.head_dim + own.column)
        x = e.let(b["xbc"][row, place])
        out = own.update(
            lambda i: b["xbc"][row, k + i],
            lambda i: b["xbc"][row, q + i],
            lambda _i: decay,
            e.let(x * step),
        )
        T.buffer_store(b["out"], e.fma(x, skip, out), [row, place])

    return walk(spec.buffers(), spec.state_shape, limits, row)

"""The gated delta rule, on GPUs; `state_column.py` walks its state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import GatedDeltaSpec
from wherry.ops.recurrent import L2_EPS

from . import emit as e
from .limits import GpuLimits
from .state_column import Column, exp, softplus, walk


def gated_delta(spec: GatedDeltaSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.gated_delta`, for any sizes."""
    dk = spec.key_dim

    def row(own: Column, row: Any) -> None:
        b, one = own.b, T.float32(1)
        q = e.let(e.div(own.head, spec.heads // spec.key_heads) * dk)
        k = e.let(q + spec.key_heads * dk)
        if spec.channel_decay:
            first = e.let(own.head * dk)

            def decay(i: Any) -> Any:
                return b["decays"][row, first + i]

        else:
            rate = e.let(exp(b["a_log"][own.head]))
            x = e.let(b["gates"][row, spec.heads + own.head] + b["dt_bias"][own.head])
            decay_factor = e.let(exp(T.float32(0) - rate * softplus(x)))

            def decay(_i: Any) -> Any:
                return decay_factor

        lengths = [e.Variable(T.float32(L2_EPS)) for _ in range(2)]
        read = e.Variable(T.float32(0))  # S^T k after the decay, before k's length
        with T.serial(dk) as i:
            for total, first_column in zip(lengths, (q, k), strict=True):
                x = e.let(b["qkv"][row, first_column + i])
                total.set(e.fma(x, x, total.value))
            read.set(e.fma(own.state(i) * decay(i), b["qkv"][row, k + i], read.value))
        q_factor = e.let(e.number(dk**-0.5) / T.sqrt(lengths[0].value))
        k_factor = e.let(one / T.sqrt(lengths[1].value))
        minus = T.float32(0) - b["gates"][row, own.head]
        beta = e.let(one / (one + exp(minus)))
        value = b["qkv"][row, 2 * spec.key_heads * dk + own.head * spec.value_dim + own.column]
        delta = e.let((value - read.value * k_factor) * beta * k_factor)
        out = own.update(
            lambda i: b["qkv"][row, k + i], lambda i: b["qkv"][row, q + i], decay, delta
        )
        place = own.head * spec.value_dim + own.column
        T.buffer_store(b["out"], out * q_factor, [row, place])

    return walk(spec.buffers(), spec.state_shape, limits, row)

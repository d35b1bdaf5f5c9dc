"""The gated delta rule, on CPUs; `state_strip.py` walks its state."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import GatedDeltaSpec
from wherry.ops.recurrent import L2_EPS

from . import vector as v
from .isa import Isa
from .state_strip import StateStrip, softplus, walk


def gated_delta(spec: GatedDeltaSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.gated_delta`, for any sizes."""
    dk, dv, fma = spec.key_dim, spec.value_dim, isa.fma

    def row(strip: StateStrip, row: Any) -> None:
        b, one = strip.b, T.float32(1)
        key_head = v.let(T.floordiv(strip.head, spec.heads // spec.key_heads) * dk)
        q = unit(b["qkv"], row, key_head, dk, dk**-0.5, fma)
        k = unit(b["qkv"], row, v.let(key_head + spec.key_heads * dk), dk, 1.0, fma)
        minus = T.float32(0) - b["gates"][row, strip.head]
        beta = v.let(one / (one + v.exp(minus, 1, fma)))
        values = strip.load(b["qkv"], row, 2 * spec.key_heads * dk + strip.head * dv)
        if spec.channel_decay:
            first = v.let(strip.head * dk)

            def decay(i: Any) -> Any:
                return b["decays"][row, first + i]

            kept = strip.read(lambda i: k[i] * decay(i))
        else:
            rate = v.let(v.exp(b["a_log"][strip.head], 1, fma))
            x = v.let(b["gates"][row, spec.heads + strip.head] + b["dt_bias"][strip.head])
            decay_factor = v.let(v.exp(T.float32(0) - rate * softplus(x, 1, fma), 1, fma))

            def decay(_i: Any) -> Any:
                return decay_factor

            kept = [old * strip.splat(decay_factor) for old in strip.read(lambda i: k[i])]
        deltas = [
            v.let((value - old) * strip.splat(beta))
            for value, old in zip(values, kept, strict=True)
        ]
        out = strip.update(
            lambda i: k[i], lambda i: q[i], lambda i, _j: strip.splat(decay(i)), deltas
        )
        strip.store(row, strip.head * dv, out)

    return walk(spec.buffers(), spec.state_shape, isa, row)


def unit(x: Any, row: Any, first: Any, dk: int, scale: float, fma: bool) -> Any:
    """Emit x[row, first : first + dk] as a unit vector times `scale`, [dk]."""
    lanes = v.widest(dk)
    unit_vector = T.sblock_alloc_buffer((dk,), "float32")
    squares = v.splat(0.0, lanes)
    for start in range(0, dk, lanes):
        part = v.let(x[row, v.span(first + start, lanes)])
        squares = v.let(v.fma(part, part, squares, lanes, fma))
    length = v.square_root(v.sum_lanes(squares, lanes) + T.float32(L2_EPS), 1)
    factor = v.let(T.float32(scale) / length)
    for start in range(0, dk, lanes):
        part = x[row, v.span(first + start, lanes)]
        T.buffer_store(unit_vector, part * v.splat(factor, lanes), [v.span(start, lanes)])
    return unit_vector

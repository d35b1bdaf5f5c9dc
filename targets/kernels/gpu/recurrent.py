"""Operations with a recurrent state, on GPUs: short convolution and gated delta rule.

The delta rule has a block for each sequence and value head, and a thread for each column of the
state, which walks the sequence's rows in order. A thread reads and writes its own column alone, so
there are no barriers, and a row's bits depend on nothing but the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import GatedDeltaSpec, ShortConvSpec
from wherry.ops.recurrent import L2_EPS, LOG1P

from . import emit as e
from .elementwise import gated
from .limits import GpuLimits

# ---- short convolution ----


def short_conv(spec: ShortConvSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.short_conv`, in two launches: results, then the state."""
    c, kept = spec.channels, spec.taps - 1
    threads = limits.block_for(c)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def each_channel(make: Callable[[Any, Any], None]) -> Callable[[Any, Any, Any], None]:
            def body(block: Any, item: Any, t: Any) -> None:
                channel = e.let(block * threads + t)
                if c % threads:
                    e.when(channel < c, lambda: make(item, channel))
                else:
                    make(item, channel)

            return body

        blocks = -(-c // threads)
        results = each_channel(lambda row, channel: _convolve(spec, b, row, channel))
        e.launch((blocks, sizes["n"]), threads, results)
        # The results read the old states of all sequences, so the new ones are a later launch.
        states = each_channel(lambda s, channel: _keep(b, s, channel, kept))
        e.launch((blocks, sizes["r"]), threads, states)

    bias: list[e.Parameter] = [("bias", (c,), "float32")] if spec.bias else []
    return e.prim_func(
        [
            ("x", ("n", c), "float32"),
            ("sequences", ("n",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            ("weight", (spec.taps, c), "float32"),
            *bias,
            ("slots", ("r",), "int32"),
            ("state", ("count", kept, c), "float32"),
            ("y", ("n", c), "float32"),
        ],
        emit,
    )


def _convolve(spec: ShortConvSpec, b: dict[str, Any], row: Any, channel: Any) -> None:
    """Emit one result, from inputs of the step or, before its first row, of the state."""
    kept = spec.taps - 1
    sequence = e.let(b["sequences"][row])
    slot = e.let(b["slots"][sequence])
    after = e.let(row - b["query_indptr"][sequence])  # rows of this step before it
    total = e.Variable(b["bias"][channel] if spec.bias else T.float32(0))
    for j in range(spec.taps):
        value = e.Variable(T.float32(0))

        def of_rows(j: int = j, value: e.Variable = value) -> None:
            value.set(b["x"][row - (kept - j), channel])

        def of_state(j: int = j, value: e.Variable = value) -> None:
            value.set(b["state"][slot, after + j, channel])

        if j == kept:
            of_rows()
        else:
            e.if_else(after + j >= kept, of_rows, of_state)
        total.set(e.fma(value.value, b["weight"][j, channel], total.value))
    y = total.value
    y = gated(y, T.float32(1)) if spec.activation == "silu" else y
    T.buffer_store(b["y"], y, [row, channel])


def _keep(b: dict[str, Any], s: Any, channel: Any, kept: int) -> None:
    """Emit one channel of a sequence's new state: its last `kept` inputs."""
    slot = e.let(b["slots"][s])
    end = e.let(b["query_indptr"][s + 1])
    rows = e.let(end - b["query_indptr"][s])
    # In ascending order: place j takes the old place j + rows, which is written later.
    for j in range(kept):

        def of_rows(j: int = j) -> None:
            T.buffer_store(b["state"], b["x"][end - (kept - j), channel], [slot, j, channel])

        def of_state(j: int = j) -> None:
            T.buffer_store(b["state"], b["state"][slot, j + rows, channel], [slot, j, channel])

        e.if_else(rows + j >= kept, of_rows, of_state)


# ---- gated delta rule ----


def gated_delta(spec: GatedDeltaSpec, limits: GpuLimits) -> PrimFunc:
    """Return the kernel of `KernelSet.gated_delta`, for any sizes."""
    h, dv = spec.heads, spec.value_dim
    threads = limits.block_for(dv)
    blocks = -(-dv // threads)  # of a head

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(block: Any, sequence: Any, t: Any) -> None:
            head = e.let(e.div(block, blocks))
            column = e.let(e.mod(block, blocks) * threads + t)

            def walk() -> None:
                _Column(spec, b, sequence, head, column).emit()

            if dv % threads:
                e.when(column < dv, walk)
            else:
                walk()

        e.launch((h * blocks, sizes["r"]), threads, block)

    return e.prim_func(spec.buffers(), emit)


class _Column:
    """Emits the rows of one sequence for one column of a value head's state."""

    def __init__(
        self, spec: GatedDeltaSpec, buffers: dict[str, Any], sequence: Any, head: Any, column: Any
    ) -> None:
        self.spec, self.b, self.sequence = spec, buffers, sequence
        self.head, self.column = head, column

    def emit(self) -> None:
        """Emit the loop over the sequence's rows."""
        b = self.b
        slot = e.let(b["slots"][self.sequence])
        begin = e.let(b["query_indptr"][self.sequence])
        rows = e.let(b["query_indptr"][self.sequence + 1] - begin)
        rate = e.let(_exp(b["a_log"][self.head]))
        with T.serial(rows) as i:
            self._row(begin + i, slot, rate)

    def _row(self, row: Any, slot: Any, rate: Any) -> None:
        spec, b, one = self.spec, self.b, T.float32(1)
        dk = spec.key_dim
        q = e.let(e.div(self.head, spec.heads // spec.key_heads) * dk)
        k = e.let(q + spec.key_heads * dk)
        lengths = [e.Variable(T.float32(L2_EPS)) for _ in range(2)]
        read = e.Variable(T.float32(0))  # S^T k, before the decay and k's length
        with T.serial(dk) as i:
            for total, first in zip(lengths, (q, k), strict=True):
                x = e.let(b["qkv"][row, first + i])
                total.set(e.fma(x, x, total.value))
            read.set(e.fma(self._state(slot, i), b["qkv"][row, k + i], read.value))
        q_factor = e.let(e.number(dk**-0.5) / T.sqrt(lengths[0].value))
        k_factor = e.let(one / T.sqrt(lengths[1].value))
        x = e.let(b["gates"][row, spec.heads + self.head] + b["dt_bias"][self.head])
        decay = e.let(_exp(T.float32(0) - rate * _softplus(x)))
        minus = T.float32(0) - b["gates"][row, self.head]
        beta = e.let(one / (one + _exp(minus)))
        value = b["qkv"][row, 2 * spec.key_heads * dk + self.head * spec.value_dim + self.column]
        delta = e.let((value - read.value * k_factor * decay) * beta * k_factor)
        out = e.Variable(T.float32(0))
        with T.serial(dk) as i:
            kept = self._state(slot, i) * decay
            new = e.let(e.fma(b["qkv"][row, k + i], delta, kept))
            T.buffer_store(b["state"], new, [slot, self.head, i, self.column])
            out.set(e.fma(new, b["qkv"][row, q + i], out.value))
        place = self.head * spec.value_dim + self.column
        T.buffer_store(b["out"], out.value * q_factor, [row, place])

    def _state(self, slot: Any, i: Any) -> Any:
        return self.b["state"][slot, self.head, i, self.column]


def _exp(x: Any) -> Any:
    """Emit e^x, clamped: in WGSL the result of an overflow is undefined."""
    return T.exp(T.min(T.max(x, T.float32(-87)), T.float32(87)))


def _softplus(x: Any) -> Any:
    """Emit log(1 + e^x) of a number, without a logarithm."""
    u = e.let(_exp(T.float32(0) - T.max(x, T.float32(0) - x)))
    s = e.let(u / (T.float32(2) + u))
    square = e.let(s * s)
    series = e.number(LOG1P[0])
    for coefficient in LOG1P[1:]:
        series = e.let(e.fma(series, square, e.number(coefficient)))
    return e.let(T.max(x, T.float32(0)) + T.float32(2) * s * series)

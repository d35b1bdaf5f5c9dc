"""Short causal convolutions, on GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ShortConvSpec

from . import emit as e
from .elementwise import gated
from .limits import GpuLimits


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

"""Short causal convolutions, on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ShortConvSpec

from . import function
from . import vector as v
from .isa import Isa
from .tiles import each_row


def short_conv(spec: ShortConvSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.short_conv`, for any number of channels and taps."""
    c, kept = spec.channels, spec.taps - 1

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        bias = b.get("bias")
        each_row(sizes["n"], 8 * c, lambda row: _convolve(spec, isa, b, bias, row))
        # The results above read the old states, so the new ones are written after all of them.
        with T.serial(sizes["r"]) as s, T.sblock("keep"):
            T.reads()
            T.writes()
            _keep(b, s, kept)

    bias: list[function.Parameter] = [("bias", (c,), "float32")] if spec.bias else []
    return function.prim_func(
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


def _convolve(spec: ShortConvSpec, isa: Isa, b: dict[str, Any], bias: Any, row: Any) -> None:
    """Emit one row's results, from `taps` rows of x or, before the first row, of the state."""
    kept = spec.taps - 1
    sequence = v.let(b["sequences"][row])
    slot = v.let(b["slots"][sequence])
    after = v.let(T.Cast("int32", row) - b["query_indptr"][sequence])  # rows of this step before it

    def results(load: Callable[[int, Any, int], Any]) -> None:
        def store(column: Any, lanes: int) -> None:
            span = v.span(column, lanes)
            total = v.splat(0.0, lanes) if bias is None else bias[span]
            for j in range(spec.taps):
                total = v.let(
                    v.fma(load(j, column, lanes), b["weight"][j, span], total, lanes, isa.fma)
                )
            if spec.activation == "silu":
                one = v.splat(1.0, lanes)
                total = total / (one + v.exp(v.splat(0.0, lanes) - total, lanes, isa.fma))
            T.buffer_store(b["y"], total, [row, span])

        v.over_columns(spec.channels, store)

    def from_rows(j: int, column: Any, lanes: int) -> Any:
        return b["x"][row - (kept - j), v.span(column, lanes)]

    with T.If(after >= kept):
        with T.Then():
            results(from_rows)
        with T.Else(), T.sblock("first"):
            T.reads()
            T.writes()
            inputs = T.sblock_alloc_buffer((spec.taps, spec.channels), "float32")
            for j in range(spec.taps):
                _copy_input(b, inputs, row, slot, after, kept, j)
            results(lambda j, column, lanes: inputs[j, v.span(column, lanes)])


def _copy_input(
    b: dict[str, Any], inputs: Any, row: Any, slot: Any, after: Any, kept: int, j: int
) -> None:
    """Emit the copy of a row's input of tap `j`, which is a row of x or of the state."""
    channels = int(inputs.shape[1])

    def of_rows(column: Any, lanes: int) -> None:
        span = v.span(column, lanes)
        T.buffer_store(inputs, b["x"][row - (kept - j), span], [j, span])

    def of_state(column: Any, lanes: int) -> None:
        span = v.span(column, lanes)
        T.buffer_store(inputs, b["state"][slot, after + j, span], [j, span])

    with T.If(after + j >= kept):
        with T.Then():
            v.over_columns(channels, of_rows)
        with T.Else():
            v.over_columns(channels, of_state)


def _keep(b: dict[str, Any], s: Any, kept: int) -> None:
    """Emit a sequence's new state: its last `kept` inputs."""
    slot = v.let(b["slots"][s])
    end = v.let(b["query_indptr"][s + 1])
    rows = v.let(end - b["query_indptr"][s])
    channels = int(b["x"].shape[1])
    # In ascending order: place j takes the old place j + rows, which is written later.
    for j in range(kept):

        def of_rows(column: Any, lanes: int, j: int = j) -> None:
            span = v.span(column, lanes)
            T.buffer_store(b["state"], b["x"][end - kept + j, span], [slot, j, span])

        def of_state(column: Any, lanes: int, j: int = j) -> None:
            span = v.span(column, lanes)
            T.buffer_store(b["state"], b["state"][slot, j + rows, span], [slot, j, span])

        with T.If(rows + j >= kept):
            with T.Then():
                v.over_columns(channels, of_rows)
            with T.Else():
                v.over_columns(channels, of_state)

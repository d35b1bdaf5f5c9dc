"""Operations with a recurrent state, on CPUs: short convolution and gated delta rule.

The delta rule walks the rows of a sequence in order, one head and a strip of its columns at a time:
columns of a state do not depend on each other, and a strip of 32 columns stays in L1 for all rows.
A strip is contiguous: the state of a head, [dk, dv] to others, is [strips, dk, 32] here. A decode
step therefore reads and writes each state once, in order. Sums over dk have the same four chains in
every strip, so a row's bits depend on nothing but the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import GatedDeltaSpec, ShortConvSpec
from wherry.ops.recurrent import L2_EPS, LOG1P

from . import function
from . import vector as v
from .isa import Isa
from .tiles import each_row

_CHAINS = 4  # independent sums over dk, which hide the latency of the FMA
_STRIP = 32  # columns of a state that stay in L1 while the rows pass


# ---- short convolution ----


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


# ---- gated delta rule ----


def gated_delta(spec: GatedDeltaSpec, isa: Isa) -> PrimFunc:
    """Return the kernel of `KernelSet.gated_delta`, for any sizes."""
    h, dv = spec.heads, spec.value_dim
    strip = next(size for size in (_STRIP, 16, 8, 4, 2, 1) if dv % size == 0)
    strips = dv // strip

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        with T.parallel(sizes["r"] * (h * strips)) as task, T.sblock("strip"):
            T.reads()
            T.writes()
            sequence = v.let(T.Cast("int32", T.floordiv(task, h * strips)))
            head = v.let(T.Cast("int32", T.floordiv(T.floormod(task, h * strips), strips)))
            number = v.let(T.Cast("int32", T.floormod(task, strips)))
            _Strip(spec, isa, b, strip, sequence, head, number).emit()

    return function.prim_func(spec.buffers(), emit)


class _Strip:
    """Emits the rows of one sequence over one strip of a head's columns."""

    def __init__(
        self,
        spec: GatedDeltaSpec,
        isa: Isa,
        buffers: dict[str, Any],
        columns: int,
        sequence: Any,
        head: Any,
        number: Any,
    ) -> None:
        self.spec, self.isa, self.b = spec, isa, buffers
        self.columns, self.head, self.number = columns, head, number
        self.lanes = min(16, columns)
        self.vectors = columns // self.lanes
        self.chains = _CHAINS if spec.key_dim % _CHAINS == 0 else 1
        self.sequence = sequence
        self.slot = v.let(buffers["slots"][sequence])

    def emit(self) -> None:
        """Emit the loop over the sequence's rows."""
        spec, b = self.spec, self.b
        # The layout is [strips, dk, columns]: the last index goes beyond its extent.
        self.first = v.let(self.number * (spec.key_dim * self.columns))
        rate = v.let(v.exp(b["a_log"][self.head], 1, self.isa.fma))
        begin = v.let(b["query_indptr"][self.sequence])
        with T.serial(b["query_indptr"][self.sequence + 1] - begin) as i, T.sblock("row"):
            T.reads()
            T.writes()
            self._row(v.let(begin + i), rate)

    def _row(self, row: Any, rate: Any) -> None:
        spec, b, one = self.spec, self.b, T.float32(1)
        key_head = T.floordiv(self.head, spec.heads // spec.key_heads) * spec.key_dim
        q = self._unit(row, v.let(key_head), spec.key_dim**-0.5)
        k = self._unit(row, v.let(key_head + spec.key_heads * spec.key_dim), 1.0)
        x = v.let(b["gates"][row, spec.heads + self.head] + b["dt_bias"][self.head])
        decay = v.let(v.exp(T.float32(0) - rate * self._softplus(x), 1, self.isa.fma))
        minus = T.float32(0) - b["gates"][row, self.head]
        beta = v.let(one / (one + v.exp(minus, 1, self.isa.fma)))
        read = self._read(k)
        first = v.let(2 * spec.key_heads * spec.key_dim + self.head * spec.value_dim)
        place = v.let(self.number * self.columns)
        deltas = []
        for j, old in enumerate(read):
            value = b["qkv"][row, v.span(first + place + j * self.lanes, self.lanes)]
            kept = value - old * v.splat(decay, self.lanes)
            deltas.append(v.let(kept * v.splat(beta, self.lanes)))
        out = self._update(k, q, decay, deltas)
        for j, total in enumerate(out):
            column = self.head * spec.value_dim + place + j * self.lanes
            T.buffer_store(b["out"], total, [row, v.span(column, self.lanes)])

    def _unit(self, row: Any, first: Any, scale: float) -> Any:
        """Emit q or k of a row, from column `first` on, as a unit vector times `scale`, [dk]."""
        dk, fma = self.spec.key_dim, self.isa.fma
        lanes = v.widest(dk)
        made = T.sblock_alloc_buffer((dk,), "float32")
        squares = v.splat(0.0, lanes)
        for start in range(0, dk, lanes):
            x = v.let(self.b["qkv"][row, v.span(first + start, lanes)])
            squares = v.let(v.fma(x, x, squares, lanes, fma))
        length = v.square_root(v.sum_lanes(squares, lanes) + T.float32(L2_EPS), 1)
        factor = v.let(T.float32(scale) / length)
        for start in range(0, dk, lanes):
            x = self.b["qkv"][row, v.span(first + start, lanes)]
            T.buffer_store(made, x * v.splat(factor, lanes), [v.span(start, lanes)])
        return made

    def _softplus(self, x: Any) -> Any:
        """Emit log(1 + e^x) of a number."""
        fma, zero = self.isa.fma, T.float32(0)
        u = v.let(v.exp(zero - v.absolute(x, 1), 1, fma))
        s = v.let(u / (T.float32(2) + u))
        series = v.horner(v.let(s * s), LOG1P, 1, fma)
        return v.let(v.maximum(x, zero) + T.float32(2) * s * series)

    def _sums(self) -> list[Any]:
        """Allocate the sums of all chains, which start at zero."""
        made = []
        for _ in range(self.chains * self.vectors):
            buffer = T.sblock_alloc_buffer((self.lanes,), "float32")
            T.buffer_store(buffer, v.splat(0.0, self.lanes), [v.span(0, self.lanes)])
            made.append(buffer)
        return made

    def _totals(self, sums: list[Any]) -> list[Any]:
        """Emit the sum of the chains of each vector of columns."""
        span, totals = v.span(0, self.lanes), []
        for j in range(self.vectors):
            parts = [sums[c * self.vectors + j][span] for c in range(self.chains)]
            while len(parts) > 1:
                parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
            totals.append(v.let(parts[0]))
        return totals

    def _each(self, emit: Callable[[Any, int, int, list[Any]], None]) -> None:
        """Emit `emit(i, chain, vector, place)` for each row i of the state and vector of it."""
        with T.serial(self.spec.key_dim // self.chains) as step, T.sblock("state"):
            T.reads()
            T.writes()
            for chain in range(self.chains):
                i = step * self.chains + chain
                for j in range(self.vectors):
                    at = self.first + i * self.columns + j * self.lanes
                    emit(i, chain, j, [self.slot, self.head, 0, v.span(at, self.lanes)])

    def _read(self, k: Any) -> list[Any]:
        """Emit S^T k for the strip, before the decay."""
        sums, span = self._sums(), v.span(0, self.lanes)

        def add(i: Any, chain: int, j: int, place: list[Any]) -> None:
            total = sums[chain * self.vectors + j]
            s = self.b["state"][tuple(place)]
            made = v.fma(s, v.splat(k[i], self.lanes), total[span], self.lanes, self.isa.fma)
            T.buffer_store(total, made, [span])

        self._each(add)
        return self._totals(sums)

    def _update(self, k: Any, q: Any, decay: Any, deltas: list[Any]) -> list[Any]:
        """Emit S = decay * S + k (x) delta for the strip, and its S^T q."""
        sums, span, lanes, fma = self._sums(), v.span(0, self.lanes), self.lanes, self.isa.fma

        def step(i: Any, chain: int, j: int, place: list[Any]) -> None:
            total = sums[chain * self.vectors + j]
            old = self.b["state"][tuple(place)] * v.splat(decay, lanes)
            new = v.let(v.fma(v.splat(k[i], lanes), deltas[j], old, lanes, fma))
            T.buffer_store(self.b["state"], new, place)
            made = v.fma(new, v.splat(q[i], lanes), total[span], lanes, fma)
            T.buffer_store(total, made, [span])

        self._each(step)
        return self._totals(sums)

"""Linears of a mixture of experts, on CPUs: each row is multiplied by the weights of its experts.

Slots are sorted by expert (`route`), so that all rows of an expert share the loads of its weights.
Each thread processes a strip of columns and visits the experts in ascending order, so a row's sum
over its experts is accumulated in place, in an order that no other row changes. Tiles are the same
as in `linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm.script import tirx as T

from wherry.ops import ExpertLinearSpec
from wherry.ops.blocks import FORMATS, BlockFormat
from wherry.targets.kernels.kernel_set import PackedLinear

from . import vector as v
from .bf16_experts import Bf16Experts
from .bf16_linear import LEAST
from .bf16_tiles import Strip
from .block_float_tiles import HEIGHTS, block_float_tile
from .block_tiles import BlockWeights, block_tile
from .elementwise import gelu_tanh
from .expert_layout import pack_experts, packed_parameters, packed_shapes, units
from .function import Parameter, prim_func
from .int8_dot import block_dot, int8_dot
from .int_layout import LAYOUTS
from .int_tiles import float_tile as integer_tile
from .int_tiles import int8_tile
from .isa import Isa
from .linear import float_tile, heights_of
from .quantize_rows import Int8Rows, quantize_row
from .quantized_linear import float_heights
from .tiles import PANEL, PARALLEL_BYTES, each_row, over_rows

STRIP = 4  # minimum units (pairs of panels) of a thread, for consecutive reads of tens of kilobytes
_BITS = {"f32": 32, "f16": 16, "q4": 4, "q8": 8}
_BITS |= {name: own.low + own.high for name, own in FORMATS.items()}
# A function of a unit, rows of x, and a buffer float32 [2, 16] for the sums of each row.
Tile = Callable[[Any, Sequence[Any], list[Any]], None]


def expert_linear(spec: ExpertLinearSpec, isa: Isa) -> PackedLinear | None:
    """Return the kernel of an expert linear; see `KernelSet.expert_linear`.

    None for block formats without an int8 dot product.
    """
    own = FORMATS.get(spec.scheme)
    if own and block_dot(isa, own) is None:
        return None
    parameters: list[Parameter] = [
        ("x", ("n" if spec.shared_rows else "s", spec.in_features), "float32"),
        *(_order(spec) if spec.routed else []),
        *([("weights", ("n", spec.top_k), "float32")] if spec.combined else []),
        *([("bias", (spec.experts, spec.out_features), "float32")] if spec.bias else []),
        *packed_parameters(spec),
        ("y", ("n" if spec.combined else "t", spec.width), "float32"),
    ]
    return PackedLinear(
        weights=packed_shapes(spec),
        pack=pack_experts(spec),
        compute=prim_func(parameters, lambda b, sizes: _Emitter(spec, isa, b, sizes).emit()),
        inputs=spec.inputs,
    )


def _order(spec: ExpertLinearSpec) -> list[Parameter]:
    return [
        ("ids", ("n", spec.top_k), "int32"),
        ("starts", (spec.experts + 1,), "int32"),
        ("slots", ("o",), "int32"),
    ]


@dataclass(frozen=True, slots=True)
class _Emitter:
    """Emits the body of one expert linear kernel."""

    spec: ExpertLinearSpec
    isa: Isa
    b: dict[str, Any]  # parameter name -> buffer
    sizes: dict[str, Any]

    def emit(self) -> None:
        """Emit the whole kernel body."""
        spec, y = self.spec, self.b["y"]
        heights, tile = self._tiles()
        count = units(spec)
        strips = -(-count // STRIP)
        active = spec.top_k * spec.out_features * spec.in_features * _BITS[spec.scheme] // 8
        loop = T.parallel if active >= PARALLEL_BYTES else T.serial
        many = None
        if self.isa.amx and spec.scheme not in FORMATS:
            many = Bf16Experts.of(spec, self.b)
            many.fill(spec.experts, self.b["x"], self._rows_of, self._source)
        with loop(strips) as strip, T.sblock("strip"):
            T.reads()
            T.writes()
            units_here = T.min(STRIP, count - strip * STRIP)
            buffers = many.strip(2 * min(STRIP, count)) if many else None
            if spec.combined:
                with T.serial(y.shape[0]) as row:
                    self._clear(row, strip)
            with T.serial(spec.experts) as expert, T.sblock("expert"):
                T.reads()
                T.writes()
                first, rows = self._rows_of(expert)
                with T.If(rows > 0), T.Then():
                    few = partial(self._few, heights, tile, strip, units_here)
                    if many and buffers:
                        some = (strip, units_here, (first, expert, rows))
                        self._many(many, buffers, *some, partial(few, first, expert, rows))
                    else:
                        few(first, expert, rows)

    def _few(
        self,
        heights: tuple[int, ...],
        tile: Tile,
        strip: Any,
        units_here: Any,
        first: Any,
        expert: Any,
        rows: Any,
    ) -> None:
        """Emit the results of an expert's slots in tiles."""
        with T.serial(units_here) as u:
            of_unit = partial(self._tile, tile, first, expert, strip * STRIP + u)
            over_rows(T.Cast("int64", rows), heights, of_unit)

    def _many(
        self,
        many: Bf16Experts,
        buffers: Strip,
        strip: Any,
        units_here: Any,
        of_expert: tuple[Any, Any, Any],
        few: Callable[[], None],
    ) -> None:
        """Emit the results of an expert's slots in bfloat16, or `few` if they are few.

        `of_expert`: first slot, expert, number of slots.
        """
        first, expert, rows = of_expert
        with T.If(rows >= LEAST):
            with T.Then():
                many.multiply(buffers, 2 * STRIP * strip, *of_expert)
                with T.serial(rows) as i, T.serial(units_here) as u:
                    self._finished(buffers, (first, expert, i), strip * STRIP, u)
            with T.Else():
                few()

    def _source(self, first: Any, expert: Any, i: Any) -> Any:
        """Return the row of x that a slot multiplies."""
        slot = self._slot(first, expert, i)
        return T.floordiv(slot, self.spec.top_k) if self.spec.shared_rows else slot

    def _finished(self, own: Strip, at: tuple[Any, Any, Any], strip: Any, unit: Any) -> None:
        """Emit the epilogue of a slot and a unit of the strip; at: first slot, expert, slot."""
        with T.sblock("finished"):
            T.reads()
            T.writes()
            sums = T.sblock_alloc_buffer((2, PANEL), "float32")
            for half in (0, 1):
                total = own.sum(at[2], 2 * unit + half)
                T.buffer_store(sums, total, [half, v.span(0, PANEL)])
            self._epilogue(self._slot(*at), at[1], strip + unit, sums)

    def _rows_of(self, expert: Any) -> tuple[Any, Any]:
        """Return the first slot and the number of slots of an expert."""
        if not self.spec.routed:
            return None, self.b["x"].shape[0] // self.spec.experts
        first = v.let(self.b["starts"][expert])
        return first, v.let(self.b["starts"][expert + 1] - first)

    def _slot(self, first: Any, expert: Any, i: Any) -> Any:
        if first is None:
            return i * self.spec.experts + expert
        return v.let(self.b["slots"][first + i])

    def _tiles(self) -> tuple[tuple[int, ...], Tile]:
        """Return tile heights, and a function that emits the sums of a unit for rows of x."""
        spec, isa, x, W = self.spec, self.isa, self.b["x"], self.b["W"]
        if spec.scheme in FORMATS:
            return self._block_tiles(FORMATS[spec.scheme])
        if spec.scheme not in LAYOUTS:
            return heights_of(isa), partial(_float_sums, x, W, isa)
        dot, layout = int8_dot(isa, spec.scheme), LAYOUTS[spec.scheme]
        if dot is None:
            emit = partial(integer_tile, x, W, self.b["S"])
            return float_heights(isa), partial(
                _panel_sums, lambda p, rows, epilogue: emit(p, layout, isa, rows, epilogue)
            )
        rows = self._int8_rows(1, 0 if dot.centred else layout.zero, dot.exact)
        return dot.heights, partial(
            _panel_sums,
            lambda p, own, epilogue: int8_tile(rows, W, self.b["S"], p, dot, own, epilogue),
        )

    def _block_tiles(self, own: BlockFormat) -> tuple[tuple[int, ...], Tile]:
        """Return what `_tiles` returns, of a block format."""
        dot = block_dot(self.isa, own)
        assert dot is not None, "`expert_linear` has asked"
        weights = BlockWeights(own, self.b["W"], self.b["S"], self.b.get("U"))
        if self.isa.float_rows:
            emit = partial(block_float_tile, self.b["x"], weights)
            return HEIGHTS, partial(
                _panel_sums, lambda p, some, epilogue: emit(p, dot, some, epilogue)
            )
        rows = self._int8_rows(weights.halves, weights.zero(dot), dot.exact)
        return dot.heights, partial(
            _panel_sums,
            lambda p, some, epilogue: block_tile(rows, weights, p, dot, some, epilogue),
        )

    def _int8_rows(self, parts: int, zero: int | None, exact: bool) -> Int8Rows:
        """Emit the quantization of all rows of x; the arguments are those of `quantize_row`."""
        x, columns = self.b["x"], self.spec.in_features
        rows = Int8Rows.of(x.shape[0], columns, parts)
        each_row(x.shape[0], 2 * columns, lambda row: quantize_row(x, rows, zero, exact, row))
        return rows

    def _clear(self, row: Any, strip: Any) -> None:
        width, begin = self.spec.width, strip * STRIP * 2 * PANEL
        with T.serial(T.min(STRIP * 2 * PANEL, width - begin)) as c:
            T.buffer_store(self.b["y"], T.float32(0), [row, begin + c])

    def _tile(self, tile: Any, first: Any, expert: Any, unit: Any, height: int, begin: Any) -> None:
        """Emit the results of `height` slots of an expert, from the slot `begin` on."""
        spec = self.spec
        with T.sblock("slots"):
            T.reads()
            T.writes()
            slots = [self._slot(first, expert, begin + i) for i in range(height)]
            rows = [T.floordiv(s, spec.top_k) for s in slots] if spec.shared_rows else slots
            sums = [T.sblock_alloc_buffer((2, PANEL), "float32") for _ in slots]
            tile(expert * units(spec) + unit, rows, sums)
            for slot, own in zip(slots, sums, strict=True):
                self._epilogue(slot, expert, unit, own)

    def _epilogue(self, slot: Any, expert: Any, unit: Any, sums: Any) -> None:
        """Emit the epilogue and the stores of a slot's columns in a unit."""
        if self.spec.gate:
            self._columns(unit * PANEL, partial(self._store_gated, slot, expert, sums))
            return
        weight = None
        if self.spec.combined:
            k = self.spec.top_k
            weight = v.let(self.b["weights"][T.floordiv(slot, k), T.floormod(slot, k)])
        for half in (0, 1):
            store = partial(self._store, slot, expert, sums, half, weight)
            self._columns(unit * 2 * PANEL + half * PANEL, store)

    def _columns(self, begin: Any, store: Callable[[Any, Any, int], None]) -> None:
        """Emit `store(column, place, lanes)` for the columns of a panel that are not padding."""
        width = self.spec.width
        if width % (PANEL if self.spec.gate else 2 * PANEL) == 0:
            store(begin, 0, PANEL)
            return
        with T.If(begin + PANEL <= width):
            with T.Then():
                store(begin, 0, PANEL)
            with T.Else(), T.serial(T.max(T.int64(width) - begin, 0)) as c, T.sblock("tail"):
                T.reads()
                T.writes()
                store(begin + c, c, 1)

    def _store_gated(
        self, slot: Any, expert: Any, sums: Any, column: Any, place: Any, lanes: int
    ) -> None:
        spec, at = self.spec, v.span(place, lanes)
        gate = self._plus_bias(sums[0, at], expert, column, lanes)
        up = self._plus_bias(sums[1, at], expert, column + spec.width, lanes)
        y = self._gated(v.let(gate), v.let(up), lanes)
        T.buffer_store(self.b["y"], y, [slot, v.span(column, lanes)])

    def _gated(self, gate: Any, up: Any, lanes: int) -> Any:
        if self.spec.gate == "gelu_tanh":
            return gelu_tanh(gate, lanes, self.isa) * up
        one, alpha = v.splat(1.0, lanes), v.splat(0.0, lanes) - gate
        if self.spec.gate == "clamped":
            limit, least = (v.splat(s * self.spec.limit, lanes) for s in (1.0, -1.0))
            gate = v.let(T.Select(gate > limit, limit, gate))
            up = v.let(T.Select(up > limit, limit, T.Select(up < least, least, up))) + one
            alpha = gate * v.splat(-self.spec.alpha, lanes)
        return gate / (one + v.exp(alpha, lanes, self.isa.fma)) * up

    def _store(
        self,
        slot: Any,
        expert: Any,
        sums: Any,
        half: int,
        weight: Any,
        column: Any,
        place: Any,
        lanes: int,
    ) -> None:
        value = self._plus_bias(sums[half, v.span(place, lanes)], expert, column, lanes)
        row = slot
        if weight is not None:
            row = T.floordiv(slot, self.spec.top_k)
            so_far = self.b["y"][row, v.span(column, lanes)]
            value = v.fma(v.splat(weight, lanes), value, so_far, lanes, self.isa.fma)
        T.buffer_store(self.b["y"], value, [row, v.span(column, lanes)])

    def _plus_bias(self, value: Any, expert: Any, column: Any, lanes: int) -> Any:
        if not self.spec.bias:
            return value
        return value + self.b["bias"][expert, v.span(column, lanes)]


def _float_sums(X: Any, W: Any, isa: Isa, unit: Any, rows: Sequence[Any], sums: list[Any]) -> None:
    def epilogue(i: int, panel: int, total: Any) -> None:
        T.buffer_store(sums[i], total, [panel, v.span(0, PANEL)])

    float_tile(X, W, unit, isa, rows, epilogue)


def _panel_sums(
    tile: Callable[[Any, Sequence[Any], Any], None],
    unit: Any,
    rows: Sequence[Any],
    sums: list[Any],
) -> None:
    """Emit the sums of both panels of a unit in a loop, which halves the code size."""
    with T.serial(2) as half:

        def epilogue(i: int, total: Any) -> None:
            T.buffer_store(sums[i], total, [half, v.span(0, PANEL)])

        tile(2 * unit + half, rows, epilogue)

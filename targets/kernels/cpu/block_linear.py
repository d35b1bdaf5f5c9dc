"""Linears and embeddings whose weights are in a block format, for CPUs with an int8 dot product.

As in `quantized_linear`, activations become int8 in a workspace, integers are exact, and groups are
added in ascending order, so a row's bits do not depend on its tile. With float activations, weights
become float32 instead (block_float_tiles.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import EmbeddingSpec, LinearSpec
from wherry.ops.blocks import FORMATS, TRELLIS, BlockFormat
from wherry.targets.kernels.kernel_set import PackedLinear

from . import vector as v
from .block_float_tiles import HEIGHTS, block_float_tile
from .block_layout import OPERANDS, pack_blocks, packed_parameters, packed_shapes, words
from .block_tiles import BlockWeights, block_tile, float_of
from .function import prim_func
from .int8_dot import Int8Dot, block_dot
from .int_layout import GROUP
from .isa import Isa
from .quantize_rows import Int8Rows, quantize_row
from .quantized_linear import rows_together
from .tiles import PANEL, PARALLEL_BYTES, each_row, over_rows, store_panel

# emits a kernel's body, as `prim_func` takes it
_Emit = Callable[[dict[str, Any], dict[str, Any]], None]


def block_linear(spec: LinearSpec, isa: Isa) -> PackedLinear | None:
    """Return the kernels of a linear; None without an int8 dot product."""
    own, n, k = FORMATS[spec.scheme], spec.out_features, spec.in_features
    dot = block_dot(isa, own)
    if dot is None:
        return None
    parameters = [("x", ("m", k), "float32"), *packed_parameters(spec), ("y", ("m", n), "float32")]
    emit = (_float_body if isa.float_rows else _int8_body)(spec, dot)
    return PackedLinear(
        weights=packed_shapes(spec),
        pack=pack_blocks(spec),
        compute=prim_func(parameters, emit),
    )


def _float_body(spec: LinearSpec, dot: Int8Dot) -> _Emit:
    """Return the function that emits the kernel's body with float32 rows."""
    own, loop = FORMATS[spec.scheme], _panel_loop(spec)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        weights = BlockWeights(own, b["W"], b["S"], b.get("U"))
        with loop(int(b["W"].shape[0])) as p:

            def tile(height: int, row: Any) -> None:
                rows = [row + i for i in range(height)]
                block_float_tile(b["x"], weights, p, dot, rows, partial(_store, b["y"], rows, p))

            over_rows(sizes["m"], HEIGHTS, tile)

    return emit


def _int8_body(spec: LinearSpec, dot: Int8Dot) -> _Emit:
    """Return the function that emits the kernel's body with int8 rows."""
    own, k = FORMATS[spec.scheme], spec.in_features
    loop, together = _panel_loop(spec), rows_together(k)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        X, Y, m = b["x"], b["y"], sizes["m"]
        weights = BlockWeights(own, b["W"], b["S"], b.get("U"))
        rows = Int8Rows.of(m, k, weights.halves)
        zero = weights.zero(dot)
        each_row(m, 2 * k, lambda row: quantize_row(X, rows, zero, dot.exact, row))
        with T.serial(T.ceildiv(m, together)) as block, loop(int(b["W"].shape[0])) as p:

            def tile(height: int, row: Any) -> None:
                own_rows = [block * together + row + i for i in range(height)]
                epilogue = partial(_store, Y, own_rows, p)
                block_tile(rows, weights, p, dot, own_rows, epilogue)

            over_rows(T.min(m - block * together, together), dot.heights, tile)

    return emit


def _panel_loop(spec: LinearSpec) -> Any:
    """Return the loop over panels: parallel where the weights are large."""
    stored_bytes = spec.out_features * spec.in_features * words(FORMATS[spec.scheme]) // 8
    return T.parallel if stored_bytes >= PARALLEL_BYTES else T.serial


def _store(Y: Any, rows: list[Any], p: Any, i: int, sums: Any) -> None:
    store_panel(Y, rows[i], p, int(Y.shape[1]), sums)


def block_embedding(spec: EmbeddingSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of a lookup (tokens i32 [n], *packed, y float32 [n, dim])."""
    own, d = FORMATS[spec.scheme], spec.dim

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        weights = BlockWeights(own, b["W"], b["S"], b.get("U"))

        def row_of(row: Any) -> None:
            token = v.let(b["tokens"][row])
            with T.serial(d // GROUP) as g, T.sblock("group"):
                T.reads()
                T.writes()
                _decode(weights, b["y"], isa, (row, token, g))

        each_row(sizes["n"], 4 * d, row_of)

    packed = packed_parameters(spec.as_linear())
    return prim_func(
        [("tokens", ("n",), "int32"), *packed, ("y", ("n", d), "float32")],
        emit,
    )


def _decode(weights: BlockWeights, Y: Any, isa: Isa, at: tuple[Any, Any, Any]) -> None:
    """Emit the 32 elements of a group of one token's row; `at`: row of Y, token, group."""
    own, (row, token, g) = weights.format, at
    p, c = T.floordiv(token, PANEL), T.floormod(token, PANEL)
    loaded = [v.let(weights.W[p, g, j, c]) for j in range(words(own))]
    scales, offsets = _scalar_scales(weights, p, g, c)
    for o in range(OPERANDS):
        half = o * len(scales) // OPERANDS
        scale = scales[half]
        for b in range(4):
            value = T.Cast("float32", _integer(own, loaded, o, b))
            if own.minimum:
                value = v.fma(value, scale, offsets[half], 1, isa.fma)
            else:
                value = (value - offsets[half] if own.zeros else value) * scale
            T.buffer_store(Y, value, [row, g * GROUP + 4 * o + b])


def _integer(own: BlockFormat, loaded: list[Any], o: int, b: int) -> Any:
    """Return the value of byte b of operand o."""
    byte = _byte(own, loaded, o, b)
    if own.trellis:
        window = byte
        for before in range(1, min(own.memory, 4 * o + b) + 1):
            earlier = _byte(own, loaded, *divmod(4 * o + b - before, 4))
            window = window + earlier * T.int32(2 ** (before * own.bits))
        return _looked_up(TRELLIS, v.let(window))
    return _looked_up(own.codebook, v.let(byte)) if own.codebook else byte - T.int32(own.zero)


def _looked_up(codebook: tuple[int, ...], index: Any) -> Any:
    """Emit the value, int32, of a codebook of int8: bytes of int64."""
    words = [T.int64(int(n)) for n in np.array(codebook, np.int8).view("<i8")]
    bit = 8
    while len(words) > 1:
        even = T.bitwise_and(index, T.int32(bit)) == T.int32(0)
        words = [T.Select(even, a, b) for a, b in zip(words[0::2], words[1::2], strict=True)]
        bit *= 2
    place = T.Cast("int64", T.bitwise_and(index, T.int32(7)) * T.int32(8))
    return T.Cast("int32", T.Cast("int8", T.shift_right(words[0], place)))


def _byte(own: BlockFormat, loaded: list[Any], o: int, b: int) -> Any:
    """Return byte b of operand o."""
    if own.low == 8:
        return _field(loaded[o], 8 * b, 8)
    if own.low == 2:
        low = _field(loaded[o // 4], 8 * b + o % 4 * 2, 2)
        return low + _field(loaded[2], 8 * b + o, 1) * T.int32(4) if own.high else low
    low = _field(loaded[o % 4], 8 * b + 4 * (o // 4), 4)
    if not own.high:
        return low
    place = 8 * b + o % (8 // own.high) * own.high
    return low + _field(loaded[4 + o * own.high // 8], place, own.high) * T.int32(16)


def _field(word: Any, shift: int, bits: int) -> Any:
    return T.bitwise_and(T.shift_right(word, T.int32(shift)), T.int32(2**bits - 1))


def _scalar_scales(weights: BlockWeights, p: Any, g: Any, c: Any) -> tuple[list[Any], list[Any]]:
    """Emit the scale of each half of a group, and their minimums or zero point, of one row."""
    own = weights.format
    block = T.floordiv(g, own.block // GROUP)
    levels = [
        v.let(T.Cast("float32", weights.S[p, block, level, c]))
        for level in range(1 + weights.corrected)
    ]
    if not own.two_levels:
        return levels[:1], levels[1:]
    index, shift = weights.pair(g)
    pair = v.let(T.shift_right(weights.U[p, index, c], shift))
    halves = weights.halves
    scales = [
        v.let(levels[0] * float_of(own, v.let(_field(pair, 8 * half, 8)), 1))
        for half in range(halves)
    ]
    if not own.minimum:
        return scales, []
    bytes_ = [T.Cast("float32", _field(pair, 8 * (halves + h), 8)) for h in range(halves)]
    return scales, [v.let(T.float32(0) - levels[1] * byte) for byte in bytes_]

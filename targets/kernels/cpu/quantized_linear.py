"""Linear layers with integer weights in the layout of `int_layout`, on CPUs.

With an int8 dot product, activations become int8 with a scale per 32 elements of a row, in a
workspace of the kernel (quantize_rows.py). A group's integer dot product starts at -zero *
sum(activations), so the zero point costs nothing; some variants subtract it from the weights
instead. Integers are exact and every variant rounds the same float operations, so all variants with
FMA have the same bits. With float activations (requested, or without an int8 dot product), integers
are converted to floats, exactly, and multiplied in float32. Both add the groups in ascending order
into one accumulator per row and panel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec
from wherry.targets.kernels.kernel_set import PackedLinear

from . import script
from .int8_dot import Int8Dot, int8_dot
from .int_layout import LAYOUTS, pack_integers, packed_shapes
from .int_tiles import Epilogue, float_tile, int8_tile
from .isa import Isa
from .quantize_rows import Int8Rows, quantize_row
from .tiles import PARALLEL_BYTES, each_row, over_rows, store_panel

# Bytes of the activation rows that share the loads of the weights: they stay in L2.
_BLOCK_BYTES = 2**18
_LEAST_ROWS = 32


def quantized_linear(spec: LinearSpec, isa: Isa) -> PackedLinear:
    """Return the kernels of a linear whose scheme is "q4" or "q8"."""
    dot = int8_dot(isa.dot, spec.scheme)
    compute = _int8_compute(spec, dot) if dot else _float_compute(spec, isa)
    return PackedLinear(weights=packed_shapes(spec), pack=pack_integers(spec), compute=compute)


def rows_together(k: int) -> int:
    """Return the number of activation rows of `k` elements that share the loads of the weights."""
    return max(_LEAST_ROWS, _BLOCK_BYTES // k // 32 * 32)


def _panel_loop(spec: LinearSpec) -> Any:
    size = spec.out_features * spec.in_features * LAYOUTS[spec.scheme].bits // 8
    return T.parallel if size >= PARALLEL_BYTES else T.serial


def _int8_compute(spec: LinearSpec, dot: Int8Dot) -> PrimFunc:
    n, k = spec.out_features, spec.in_features
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec)
    zero = 0 if dot.centred else LAYOUTS[spec.scheme].zero
    loop = _panel_loop(spec)
    together = rows_together(k)

    def emit(m: Any, X: Any, W: Any, S: Any, Y: Any) -> None:
        rows = Int8Rows.of(m, k)
        each_row(m, 2 * k, lambda row: quantize_row(X, rows, zero, dot.exact, row))
        with T.serial(T.ceildiv(m, together)) as block, loop(shape[0]) as p:
            tile = _tile_of(Y, p, block * together, partial(int8_tile, rows, W, S, p, dot))
            over_rows(T.min(m - block * together, together), dot.heights, tile)

    @script.prim_func(s_tir=True, private=True)
    def linear(x: T.handle, packed: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        m = T.int64()
        X = T.match_buffer(x, (m, k), "float32")
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        Y = T.match_buffer(y, (m, n), "float32")
        emit(m, X, W, S, Y)

    return linear


def _tile_of(Y: Any, p: Any, first: Any, emit: Callable[[list[Any], Epilogue], None]) -> Any:
    """Return a tile function for `over_rows`, which stores sums in panel p of Y.

    Its rows follow the row `first`.
    """

    def tile(height: int, row: Any) -> None:
        rows = [first + row + i for i in range(height)]
        emit(rows, lambda i, sums: store_panel(Y, rows[i], p, int(Y.shape[1]), sums))

    return tile


def float_heights(isa: Isa) -> tuple[int, ...]:
    """Return the row counts of tiles with float activations, as `over_rows` takes them."""
    tall = isa.accumulators
    return (8, 4, 1) if tall >= 16 else (4, 1) if tall >= 6 else (2, 1)


def _float_compute(spec: LinearSpec, isa: Isa) -> PrimFunc:
    n, k, layout = spec.out_features, spec.in_features, LAYOUTS[spec.scheme]
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec)
    loop, heights = _panel_loop(spec), float_heights(isa)

    def emit(m: Any, X: Any, W: Any, S: Any, Y: Any) -> None:
        with loop(shape[0]) as p:
            tile = _tile_of(Y, p, 0, partial(float_tile, X, W, S, p, layout, isa))
            over_rows(m, heights, tile)

    @script.prim_func(s_tir=True, private=True)
    def linear(x: T.handle, packed: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        m = T.int64()
        X = T.match_buffer(x, (m, k), "float32")
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        Y = T.match_buffer(y, (m, n), "float32")
        emit(m, X, W, S, Y)

    return linear

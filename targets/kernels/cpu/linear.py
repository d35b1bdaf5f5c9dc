"""Linear layers with float weights.

Packed weight: W[panels, K, 16], as float32 or float16 as it was stored; panel p holds rows
16p .. 16p + 15 of the portable [N, K], zero beyond N. The number of panels is padded to a multiple
of the panels that a tile takes.

A tile is a few rows by a few panels, one accumulator each, and adds along k from 0 to K - 1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.kernel_set import PackedLinear
from wherry.targets.kernels.specs import LinearSpec

from . import vector as v
from .isa import Isa
from .tiles import PANEL, PARALLEL_BYTES, over_rows, panels, store_panel

Shape = tuple[tuple[int, ...], str]


def packed_shape(spec: LinearSpec, isa: Isa) -> Shape:
    """Shape and dtype of the packed weight."""
    dtype = {"f32": "float32", "f16": "float16"}[spec.scheme]
    width = _panels_per_tile(spec, isa)
    count = -(-panels(spec.out_features) // width) * width
    return (count, spec.in_features, PANEL), dtype


def _panels_per_tile(spec: LinearSpec, isa: Isa) -> int:
    """Independent accumulators of a one-row tile: four hide the latency of the FMA."""
    return min(4 if isa.accumulators >= 8 else 2, panels(spec.out_features))


def _heights(width: int, isa: Isa) -> tuple[int, ...]:
    tall = isa.accumulators // width
    return (6, 2, 1) if tall >= 6 else (2, 1) if tall >= 2 else (1,)


def float_linear(spec: LinearSpec, isa: Isa) -> PackedLinear:
    """Kernels of a linear whose scheme is "f32" or "f16"."""
    weight = packed_shape(spec, isa)
    return PackedLinear(
        weights=(weight,), pack=_pack(spec, weight), compute=_compute(spec, weight, isa)
    )


def _pack(spec: LinearSpec, weight: Shape) -> PrimFunc:
    n, k, dtype = spec.out_features, spec.in_features, weight[1]
    shape = weight[0]

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def pack(stored: T.handle, packed: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        source = T.match_buffer(stored, (n, k), dtype)
        target = T.match_buffer(packed, shape, dtype)
        for p, j, c in T.grid(shape[0], k, PANEL):
            with T.sblock("pack"):
                T.reads()
                T.writes()
                target[p, j, c] = T.if_then_else(
                    p * PANEL + c < n, source[p * PANEL + c, j], T.Cast(dtype, T.float32(0))
                )

    return pack


def _compute(spec: LinearSpec, weight: Shape, isa: Isa) -> PrimFunc:
    shape, dtype = weight
    n, k = spec.out_features, spec.in_features
    width = _panels_per_tile(spec, isa)
    heights = _heights(width, isa)
    size = n * k * (2 if dtype == "float16" else 4)
    loop = T.parallel if size >= PARALLEL_BYTES else T.serial

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def linear(x: T.handle, packed: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        m = T.int64()
        X = T.match_buffer(x, (m, k), "float32")
        W = T.match_buffer(packed, shape, dtype)
        Y = T.match_buffer(y, (m, n), "float32")
        for group in loop(shape[0] // width):
            over_rows(m, heights, partial(_tile, X, W, Y, group * width, width, isa))

    return linear


def _tile(X: Any, W: Any, Y: Any, panel: Any, width: int, isa: Isa, height: int, row: Any) -> None:
    """Emit Y[row : row + height, `width` panels from `panel`]."""
    k, lanes = int(X.shape[1]), v.span(0, PANEL)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        # One small buffer a row: a larger one would go to the heap, not to registers.
        sums = [T.sblock_alloc_buffer((width, PANEL), "float32") for _ in range(height)]
        weights = T.sblock_alloc_buffer((width, PANEL), "float32")
        for acc in sums:
            for p in range(width):
                T.buffer_store(acc, v.splat(0.0, PANEL), [p, lanes])
        with T.serial(k) as j:
            for p in range(width):
                w = W[panel + p, j, v.span(0, PANEL)]
                T.buffer_store(weights, T.Cast("float32x16", w), [p, lanes])
            for i, acc in enumerate(sums):
                for p in range(width):
                    x = v.splat(X[row + i, j], PANEL)
                    added = v.fma(x, weights[p, lanes], acc[p, lanes], PANEL, isa.fma)
                    T.buffer_store(acc, added, [p, lanes])
        for i, acc in enumerate(sums):
            for p in range(width):
                store_panel(Y, row + i, panel + p, int(Y.shape[1]), acc[p, lanes])

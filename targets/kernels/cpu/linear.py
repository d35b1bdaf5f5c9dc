"""Linear layers with float weights, on CPUs.

Packed weight: W[strips, K, width] in the stored dtype; strip s has the rows from s * width of the
portable [N, K], zeros beyond N. A strip is as wide as a tile.

A tile is a few rows by a strip. It has one accumulator per row and panel, and adds k in ascending
order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec, script
from wherry.targets.kernels.kernel_set import PackedLinear

from . import bf16_weights
from . import vector as v
from .bf16_linear import bf16_or
from .epilogue import Finish, bias_parameters, finish_of
from .function import Parameter, prim_func
from .isa import Isa
from .tiles import PANEL, PARALLEL_BYTES, over_rows, panels, store_panel

Shape = tuple[tuple[int, ...], str]
FLOATS = {"f32": "float32", "f16": "float16"}  # scheme -> dtype of the weights


def packed_shape(spec: LinearSpec, isa: Isa) -> Shape:
    """Return shape and dtype of the packed weight."""
    dtype = FLOATS[spec.scheme]
    width = _panels_per_tile(spec, isa)
    strips = -(-panels(spec.out_features) // width)
    return (strips, spec.in_features, width * PANEL), dtype


def _panels_per_tile(spec: LinearSpec, isa: Isa) -> int:
    """Return the panels of a tile: three independent accumulators nearly hide the FMA's latency."""
    return min(3 if isa.accumulators >= 24 else 2, panels(spec.out_features))


def heights_of(isa: Isa) -> tuple[int, ...]:
    """Return the row counts of tiles, as `over_rows` takes them."""
    return (8, 4, 2, 1) if isa.accumulators >= 24 else (2, 1) if isa.accumulators >= 4 else (1,)


def float_linear(spec: LinearSpec, isa: Isa) -> PackedLinear:
    """Return the kernels of a linear whose scheme is "f32" or "f16", with a bias or without."""
    weight = packed_shape(spec, isa)
    return PackedLinear(
        weights=(weight,),
        pack=_pack(spec, weight),
        compute=_compute(spec, weight, isa),
        inputs=1 + len(bias_parameters(spec)),
    )


def _pack(spec: LinearSpec, weight: Shape) -> PrimFunc:
    n, k = spec.out_features, spec.in_features
    shape, dtype = weight
    strips, width = shape[0], shape[2]

    @script.prim_func(s_tir=True, private=True)
    def pack(stored: T.handle, packed: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        source = T.match_buffer(stored, (n, k), dtype)
        target = T.match_buffer(packed, shape, dtype)
        for s in T.parallel(strips):
            for j, c in T.grid(k, width):
                with T.sblock("pack"):
                    T.reads()
                    T.writes()
                    target[s, j, c] = T.if_then_else(
                        s * width + c < n, source[s * width + c, j], T.Cast(dtype, T.float32(0))
                    )

    return pack


def _compute(spec: LinearSpec, weight: Shape, isa: Isa) -> PrimFunc:
    shape, dtype = weight
    n, k = spec.out_features, spec.in_features
    heights = heights_of(isa)
    size = n * k * (2 if dtype == "float16" else 4)
    loop = T.parallel if size >= PARALLEL_BYTES else T.serial

    parameters: list[Parameter] = [
        ("x", ("m", k), "float32"),
        *bias_parameters(spec),
        ("packed", shape, dtype),
        ("y", ("m", n), "float32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        finish = finish_of(spec, isa, b.get("bias"))

        def exact() -> None:
            with loop(shape[0]) as strip:
                tile = partial(_tile_of, b["x"], b["packed"], b["y"], strip, isa, finish)
                over_rows(sizes["m"], heights, tile)

        if isa.amx:
            bf16_or(b, bf16_weights.floats(b["packed"]), finish, loop, exact)
        else:
            exact()

    return prim_func(parameters, emit)


def _tile_of(
    X: Any, W: Any, Y: Any, strip: Any, isa: Isa, finish: Finish, height: int, row: Any
) -> None:
    """Emit Y[row : row + height, columns of `strip`]."""
    width = int(W.shape[2]) // PANEL

    def epilogue(i: int, p: int, sums: Any) -> None:
        panel = strip * width + p
        store_panel(Y, row + i, panel, int(Y.shape[1]), finish(panel, sums))

    float_tile(X, W, strip, isa, [row + i for i in range(height)], epilogue)


def float_tile(
    X: Any,
    W: Any,
    strip: Any,
    isa: Isa,
    rows: Sequence[Any],
    epilogue: Callable[[int, int, Any], None],
) -> None:
    """Emit `epilogue` with the sums of each panel of a strip, for rows of X in any order.

    Args:
        X: activations [m, K].
        W: packed weights.
        strip: index of the strip of W.
        isa: instruction set of the CPU.
        rows: indices of rows of X.
        epilogue: called with the row's index in `rows`, the panel's index in the strip, and the
            sums, float32x16.
    """
    k, width, height = int(X.shape[1]), int(W.shape[2]) // PANEL, len(rows)
    lanes = v.span(0, PANEL)
    with T.sblock("tile"):
        T.reads()
        T.writes()
        # One small buffer per row: TVM would put a larger one on the heap, not in registers.
        sums = [T.sblock_alloc_buffer((width, PANEL), "float32") for _ in range(height)]
        weights = T.sblock_alloc_buffer((width, PANEL), "float32")
        for acc in sums:
            for p in range(width):
                T.buffer_store(acc, v.splat(0.0, PANEL), [p, lanes])
        with T.serial(k) as j:
            _prefetch(W, strip, j, height)
            for p in range(width):
                w = W[strip, j, v.span(p * PANEL, PANEL)]
                T.buffer_store(weights, T.Cast("float32x16", w), [p, lanes])
            for i, acc in enumerate(sums):
                for p in range(width):
                    x = v.splat(X[rows[i], j], PANEL)
                    added = v.fma(x, weights[p, lanes], acc[p, lanes], PANEL, isa.fma)
                    T.buffer_store(acc, added, [p, lanes])
        for i, acc in enumerate(sums):
            for p in range(width):
                epilogue(i, p, acc[p, lanes])


def _prefetch(W: Any, strip: Any, j: Any, height: int) -> None:
    """Emit prefetches of weights for a later k; beyond the last weight, a prefetch does not fault.

    Distance and cache level were measured on a Zen 4. With a single row of float16 weights, the
    loop has no time for these instructions, and the hardware prefetcher does as well.
    """
    size, width = np.dtype(str(W.dtype)).itemsize, int(W.shape[2])
    if size == 2 and height == 1:
        return
    ahead, cache = (4096, v.L1) if size == 2 else (8192, v.L2)
    for first in range(0, width, 64 // size):
        v.prefetch(T.address_of(W[strip, j + ahead // (width * size), first]), cache)

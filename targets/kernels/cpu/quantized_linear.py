"""Linear layers with integer weights in the layout of `int_layout`, on CPUs.

With an int8 dot product, activations become int8 with a scale per 32 elements of a row, in a
workspace of the kernel (quantize_rows.py). A group's integer dot product starts at -zero *
sum(activations), so the zero point costs nothing; some variants subtract it from the weights
instead. Integers are exact and every variant rounds the same float operations, so all variants with
FMA have the same bits. Blocks of 8 rows and more are multiplied in pairs where the CPU has matrix
instructions for them (pair_tiles.py). With float activations (requested, or without an int8 dot
product), integers are converted to floats, exactly, and multiplied in float32. Both add the groups
in ascending order into one accumulator per row and panel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import LinearSpec
from wherry.targets.kernels.kernel_set import PackedLinear

from . import bf16_weights
from .bf16_linear import bf16_or
from .epilogue import Finish, bias_parameters, finish_of
from .function import Parameter, prim_func
from .int8_dot import Int8Dot, int8_dot
from .int_layout import LAYOUTS, pack_integers, packed_shapes
from .int_tiles import Epilogue, float_tile, int8_tile
from .isa import Isa
from .pair_rows import PairRows
from .pair_tiles import HEIGHTS, LEAST, PairWeights, pair_tile
from .quantize_rows import Int8Rows, quantize_row
from .tiles import PARALLEL_BYTES, each_row, over_rows, panels, store_panel

# Bytes of the activation rows that share the loads of the weights: they stay in L2. There are
# at least `_LEAST_ROWS`, whatever their length is: a step of 64 sequences reads each weight once.
_BLOCK_BYTES = 2**18
_LEAST_ROWS = 64


def quantized_linear(spec: LinearSpec, isa: Isa) -> PackedLinear:
    """Return the kernels of a linear whose scheme is "q4" or "q8"."""
    dot = int8_dot(isa, spec.scheme)
    compute = _int8_compute(spec, dot, isa) if dot else _float_compute(spec, isa)
    return PackedLinear(
        weights=packed_shapes(spec),
        pack=pack_integers(spec),
        compute=compute,
        inputs=1 + len(bias_parameters(spec)),
    )


def rows_together(k: int) -> int:
    """Return the number of activation rows of `k` elements that share the loads of the weights."""
    return max(_LEAST_ROWS, _BLOCK_BYTES // k // 32 * 32)


def _panel_loop(spec: LinearSpec) -> Any:
    size = spec.out_features * spec.in_features * LAYOUTS[spec.scheme].bits // 8
    return T.parallel if size >= PARALLEL_BYTES else T.serial


def _kernel(spec: LinearSpec, emit: Callable[[dict[str, Any], Any], None]) -> PrimFunc:
    """Return the PrimFunc (x, bias if any, packed, scales, y); `emit(buffers, m)` has its body."""
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec)
    parameters: list[Parameter] = [
        ("x", ("m", spec.in_features), "float32"),
        *bias_parameters(spec),
        ("packed", shape, "int32"),
        ("scales", scale_shape, scale_dtype),
        ("y", ("m", spec.out_features), "float32"),
    ]
    return prim_func(parameters, lambda buffers, sizes: emit(buffers, sizes["m"]))


def _int8_compute(spec: LinearSpec, dot: Int8Dot, isa: Isa) -> PrimFunc:
    k, count = spec.in_features, panels(spec.out_features)
    zero = 0 if dot.centred else LAYOUTS[spec.scheme].zero
    loop = _panel_loop(spec)
    # pairs of rows take nearly twice the bytes
    together = rows_together(2 * k if dot.matrix else k)

    def exact(b: dict[str, Any], m: Any) -> None:
        finish = finish_of(spec, isa, b.get("bias"))
        pairs = PairRows.of(m, k, LAYOUTS[spec.scheme].zero, dot.exact) if dot.matrix else None
        rows = Int8Rows.of(m, k, pairs=pairs)
        each_row(m, 2 * k, lambda row: quantize_row(b["x"], rows, zero, dot.exact, row))
        with T.serial(T.ceildiv(m, together)) as block, loop(count) as p:
            here = T.min(m - block * together, together)
            weights, y = (b["packed"], b["scales"], p), (b["y"], p, block * together, finish)
            tile = _tile_of(*y, partial(int8_tile, rows, *weights, dot))
            if pairs is None:
                over_rows(here, dot.heights, tile)
            else:
                _pairs_or(tile, here, pairs, dot, weights, y)

    def emit(b: dict[str, Any], m: Any) -> None:
        if not isa.amx:
            exact(b, m)
            return
        unpack = bf16_weights.integers(b["packed"], b["scales"], LAYOUTS[spec.scheme])
        finish = finish_of(spec, isa, b.get("bias"))
        bf16_or(b, unpack, finish, loop, lambda: exact(b, m))

    return _kernel(spec, emit)


def _pairs_or(
    tile: Callable[[int, Any], None],
    here: Any,
    pairs: PairRows,
    dot: Int8Dot,
    weights: tuple[Any, Any, Any],
    y: tuple[Any, Any, Any, Finish],
) -> None:
    """Emit a block of `here` rows in pairs, or by `tile` if they are few; y: as `_tile_of`'s."""
    with T.If(here >= LEAST):
        with T.Then(), T.sblock("block"):
            T.reads()
            T.writes()
            unpacked = PairWeights.unpack(*weights, dot)

            def sums(rows: list[Any], epilogue: Epilogue) -> None:
                first = T.floordiv(rows[0], 2)  # blocks and the tiles before are even
                pair_tile(pairs, unpacked, dot, first, len(rows), epilogue)

            by_pairs = _tile_of(*y, sums)
            over_rows(here, (*HEIGHTS, 1), lambda h, row: (by_pairs if h > 1 else tile)(h, row))
        with T.Else():
            over_rows(here, dot.heights, tile)


def _tile_of(
    Y: Any, p: Any, first: Any, finish: Finish, emit: Callable[[list[Any], Epilogue], None]
) -> Any:
    """Return a tile function for `over_rows`, which stores finished sums in panel p of Y.

    Its rows follow the row `first`.
    """

    def tile(height: int, row: Any) -> None:
        rows = [first + row + i for i in range(height)]
        columns = int(Y.shape[1])
        emit(rows, lambda i, sums: store_panel(Y, rows[i], p, columns, finish(p, sums)))

    return tile


def float_heights(isa: Isa) -> tuple[int, ...]:
    """Return the row counts of tiles with float activations, as `over_rows` takes them."""
    tall = isa.accumulators
    return (8, 4, 1) if tall >= 16 else (4, 1) if tall >= 6 else (2, 1)


def _float_compute(spec: LinearSpec, isa: Isa) -> PrimFunc:
    layout, count = LAYOUTS[spec.scheme], panels(spec.out_features)
    loop, heights = _panel_loop(spec), float_heights(isa)

    def emit(b: dict[str, Any], m: Any) -> None:
        finish = finish_of(spec, isa, b.get("bias"))
        with loop(count) as p:
            sums = partial(float_tile, b["x"], b["packed"], b["scales"], p, layout, isa)
            over_rows(m, heights, _tile_of(b["y"], p, 0, finish, sums))

    return _kernel(spec, emit)

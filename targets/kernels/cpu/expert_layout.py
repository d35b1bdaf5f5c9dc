"""Packed weights of experts: the layouts of `int_layout` and `linear`, one expert after another.

Columns are stored in units of two panels. Unit u of a plain linear has columns 32u to 32u + 31;
unit u of a gated one has columns 16u to 16u + 15 of the gate, then the same columns of the up
projection: a tile has all inputs of a result, and reads consecutive memory.

    integers  W int32 [E * 2U, G, words, 16], S scale_dtype [E * 2U, G, 16]
    floats    W [E * U, K, 32]
    blocks    W, S and U of `block_layout`, with E * 2U panels
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ExpertLinearSpec
from wherry.ops.blocks import FORMATS

from .block_layout import StoredRow, pack_panels
from .block_layout import packed_parameters as packed_blocks
from .function import Parameter, prim_func
from .int_layout import LAYOUTS, LEAST, empty_word, groups, word_of
from .linear import FLOATS
from .tiles import PANEL

Shape = tuple[tuple[int, ...], str]


def units(spec: ExpertLinearSpec) -> int:
    """Return the number of units (pairs of panels) of one expert."""
    return -(-spec.width // (PANEL if spec.gate else 2 * PANEL))


def packed_parameters(spec: ExpertLinearSpec) -> list[Parameter]:
    """Return name, shape and dtype of each packed tensor."""
    count = spec.experts * units(spec)
    if spec.scheme in FORMATS:
        return packed_blocks(spec.linear(), 2 * count)
    if spec.scheme not in LAYOUTS:
        return [("W", (count, spec.in_features, 2 * PANEL), FLOATS[spec.scheme])]
    g, words = groups(spec.in_features), LAYOUTS[spec.scheme].words
    return [
        ("W", (2 * count, g, words, PANEL), "int32"),
        ("S", (2 * count, g, PANEL), str(spec.scale_dtype)),
    ]


def packed_shapes(spec: ExpertLinearSpec) -> tuple[Shape, ...]:
    """Return shape and dtype of each packed tensor."""
    return tuple(
        (tuple(int(d) for d in shape), dtype) for _, shape, dtype in packed_parameters(spec)
    )


def stored_parameters(spec: ExpertLinearSpec) -> list[Parameter]:
    """Return the parameters of the stored (portable) tensors: name, shape, dtype."""
    e, n, k = spec.experts, spec.out_features, spec.in_features
    if spec.scheme in FORMATS:
        columns = FORMATS[spec.scheme].columns
        return [(name, (e, n, -(-k // each)), dtype) for name, (each, dtype) in columns.items()]
    if spec.scheme not in LAYOUTS:
        return [("stored", (e, n, k), FLOATS[spec.scheme])]
    g = groups(k)
    return [
        ("stored", (e, n, LAYOUTS[spec.scheme].words * g), "uint32"),
        ("stored_scales", (e, n, g), str(spec.scale_dtype)),
    ]


def pack_experts(spec: ExpertLinearSpec) -> PrimFunc:
    """Return the packing PrimFunc (*stored, *packed)."""
    emit = _pack_integers if spec.scheme in LAYOUTS else _pack_floats
    if spec.scheme in FORMATS:
        emit = _pack_blocks
    parameters = [*stored_parameters(spec), *packed_parameters(spec)]
    return prim_func(parameters, lambda b, _: emit(spec, b))


def _source(spec: ExpertLinearSpec, p: Any, c: Any) -> tuple[Any, Any, Any]:
    """Return expert and row that a lane of panel p has, and whether it is no padding."""
    each, width = 2 * units(spec), spec.width
    unit, half = p % each // 2, p % 2
    column = unit * PANEL + c if spec.gate else unit * 2 * PANEL + half * PANEL + c
    row = T.min(column, width - 1) + (half * width if spec.gate else 0)
    return p // each, row, column < width


def _pack_blocks(spec: ExpertLinearSpec, b: dict[str, Any]) -> None:
    def source(p: Any, c: Any) -> StoredRow:
        expert, row, inside = _source(spec, p, c)
        return StoredRow(b, (expert, row), inside)

    pack_panels(FORMATS[spec.scheme], b, source)


def _each_panel(
    spec: ExpertLinearSpec, emit: Callable[[Any, Any, Any, Any, Any], None], inner: int
) -> None:
    """Emit `emit(panel, i, lane, inside, (expert, row))` for all packed elements, i < inner.

    `inside` is false for padding.
    """
    count = spec.experts * 2 * units(spec)
    with T.parallel(count) as p, T.grid(inner, PANEL) as (i, c), T.sblock("pack"):
        T.reads()
        T.writes()
        expert, row, inside = _source(spec, p, c)
        emit(p, i, c, inside, (expert, row))


def _pack_integers(spec: ExpertLinearSpec, b: dict[str, Any]) -> None:
    scale_dtype, words = str(spec.scale_dtype), LAYOUTS[spec.scheme].words
    least = T.float32(LEAST[scale_dtype])

    def emit(p: Any, i: Any, c: Any, inside: Any, source: Any) -> None:
        scale = b["stored_scales"][(*source, i)]
        used = T.And(inside, T.abs(T.Cast("float32", scale)) >= least)
        kept = T.if_then_else(used, scale, T.Cast(scale_dtype, least))
        T.buffer_store(b["S"], kept, [p, i, c])
        for j in range(words):
            word = word_of(spec.scheme, lambda at: b["stored"][(*source, at)], i, j)
            word = T.if_then_else(used, word, empty_word(spec.scheme))
            T.buffer_store(b["W"], word, [p, i, j, c])

    _each_panel(spec, emit, groups(spec.in_features))


def _pack_floats(spec: ExpertLinearSpec, b: dict[str, Any]) -> None:
    dtype = FLOATS[spec.scheme]

    def emit(p: Any, k: Any, c: Any, inside: Any, source: Any) -> None:
        value = T.if_then_else(inside, b["stored"][(*source, k)], T.Cast(dtype, T.float32(0)))
        T.buffer_store(b["W"], value, [p // 2, k, p % 2 * PANEL + c])

    _each_panel(spec, emit, spec.in_features)

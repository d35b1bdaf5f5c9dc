"""Looks up rows of an embedding table in the LM head's packed layout, on CPUs."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import EmbeddingSpec, script

from . import vector as v
from .int_layout import GROUP, LAYOUTS, IntLayout, packed_shapes
from .isa import Isa
from .linear import packed_shape
from .tiles import PANEL, each_row


def embedding(spec: EmbeddingSpec, isa: Isa) -> PrimFunc:
    """Return the PrimFunc of a lookup (tokens i32 [n], *packed, y float32 [n, dim])."""
    return _int_embedding(spec) if spec.scheme in LAYOUTS else _float_embedding(spec, isa)


def _float_embedding(spec: EmbeddingSpec, isa: Isa) -> PrimFunc:
    d = spec.dim
    shape, dtype = packed_shape(spec.as_linear(), isa)

    @script.prim_func(s_tir=True, private=True)
    def lookup(tokens: T.handle, packed: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        Token = T.match_buffer(tokens, (n,), "int32")
        W = T.match_buffer(packed, shape, dtype)
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 8 * d, lambda row: _copy(Token, W, Y, row))

    return lookup


def _copy(Token: Any, W: Any, Y: Any, row: Any) -> None:
    token, width = v.let(Token[row]), int(W.shape[2])
    with T.serial(int(Y.shape[1])) as k:
        T.buffer_store(Y, T.Cast("float32", W[token // width, k, token % width]), [row, k])


def _int_embedding(spec: EmbeddingSpec) -> PrimFunc:
    d, layout = spec.dim, LAYOUTS[spec.scheme]
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec.as_linear())

    @script.prim_func(s_tir=True, private=True)
    def lookup(tokens: T.handle, packed: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        Token = T.match_buffer(tokens, (n,), "int32")
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 4 * d, lambda row: _decode(Token, W, S, Y, layout, row))

    return lookup


def _decode(Token: Any, W: Any, S: Any, Y: Any, layout: IntLayout, row: Any) -> None:
    """Emit Y[row] = (integer - zero point) * scale, for the token of that row."""
    d, token = int(Y.shape[1]), v.let(Token[row])
    if d >= GROUP:
        with T.serial(d // GROUP) as g, T.sblock("group"):
            T.reads()
            T.writes()
            _decode_group(W, S, Y, layout, row, token, g, GROUP)
    if d % GROUP:
        _decode_group(W, S, Y, layout, row, token, d // GROUP, d % GROUP)


def _decode_group(
    W: Any, S: Any, Y: Any, layout: IntLayout, row: Any, token: Any, g: Any, used: int
) -> None:
    panel, column = token // PANEL, token % PANEL
    scale = v.let(T.Cast("float32", S[panel, g, column]))
    for j in range(layout.words):
        word = v.let(W[panel, g, j, column])
        for shift, element in layout.places(j):
            if element < used:
                integer = T.bitwise_and(T.shift_right(word, T.int32(shift)), T.int32(layout.mask))
                value = T.Cast("float32", integer - T.int32(layout.zero)) * scale
                T.buffer_store(Y, value, [row, g * GROUP + element])

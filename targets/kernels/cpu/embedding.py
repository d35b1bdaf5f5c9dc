"""Rows of an embedding table, read from the layout that the output layer packs."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.targets.kernels.specs import EmbeddingSpec

from . import vector as v
from .isa import Isa
from .linear import packed_shape
from .q4_layout import GROUP, ZERO, packed_shapes
from .tiles import PANEL, each_row


def embedding(spec: EmbeddingSpec, isa: Isa) -> PrimFunc:
    """(tokens i32 [n], *packed, y float32 [n, dim])."""
    return _q4_embedding(spec) if spec.scheme == "q4" else _float_embedding(spec, isa)


def _float_embedding(spec: EmbeddingSpec, isa: Isa) -> PrimFunc:
    d = spec.dim
    shape, dtype = packed_shape(spec.as_linear(), isa)

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def lookup(tokens: T.handle, packed: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        Token = T.match_buffer(tokens, (n,), "int32")
        W = T.match_buffer(packed, shape, dtype)
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 8 * d, lambda row: _copy(Token, W, Y, row))

    return lookup


def _copy(Token: Any, W: Any, Y: Any, row: Any) -> None:
    token = v.let(Token[row])
    with T.serial(int(Y.shape[1])) as k:
        T.buffer_store(Y, T.Cast("float32", W[token // PANEL, k, token % PANEL]), [row, k])


def _q4_embedding(spec: EmbeddingSpec) -> PrimFunc:
    d = spec.dim
    (shape, _), (scale_shape, scale_dtype) = packed_shapes(spec.as_linear())

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def lookup(tokens: T.handle, packed: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        Token = T.match_buffer(tokens, (n,), "int32")
        W = T.match_buffer(packed, shape, "int32")
        S = T.match_buffer(scales, scale_shape, scale_dtype)
        Y = T.match_buffer(y, (n, d), "float32")
        each_row(n, 4 * d, lambda row: _decode(Token, W, S, Y, row))

    return lookup


def _decode(Token: Any, W: Any, S: Any, Y: Any, row: Any) -> None:
    """Emit Y[row] = (nibble - 7) * scale."""
    d, token = int(Y.shape[1]), v.let(Token[row])
    if d >= GROUP:
        with T.serial(d // GROUP) as g, T.sblock("group"):
            T.reads()
            T.writes()
            _decode_group(W, S, Y, row, token, g, GROUP)
    if d % GROUP:
        _decode_group(W, S, Y, row, token, d // GROUP, d % GROUP)


def _decode_group(W: Any, S: Any, Y: Any, row: Any, token: Any, g: Any, used: int) -> None:
    panel, column = token // PANEL, token % PANEL
    scale = v.let(T.Cast("float32", S[panel, g, column]))
    for j in range(4):
        word = v.let(W[panel, g, j, column])
        for first in (4 * j, 4 * j + 16):
            for b in range(0, min(4, used - first)):
                shift = T.int32(8 * b + (4 if first >= 16 else 0))
                nibble = T.bitwise_and(T.shift_right(word, shift), T.int32(15))
                value = T.Cast("float32", nibble - T.int32(ZERO)) * scale
                T.buffer_store(Y, value, [row, g * GROUP + first + b])

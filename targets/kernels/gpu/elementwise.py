"""SwiGLU, and rows of an embedding table."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import EmbeddingSpec, SwiGLUSpec
from . import emit as e
from .limits import GpuLimits
from .weights import WORD, Weights, stored_shapes


def swiglu(spec: SwiGLUSpec, limits: GpuLimits) -> PrimFunc:
    """(gate_up [n, 2d], y [n, d]), float32: y = gate / (1 + exp(-gate)) * up."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def gated(gate_up: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        X = T.match_buffer(gate_up, (n, 2 * d), "float32")
        Y = T.match_buffer(y, (n, d), "float32")
        e.launch(
            (-(-d // threads), n),
            threads,
            lambda block, row, t: _gate(X, Y, row, block * threads + t, threads),
        )

    return gated


def _gate(X: Any, Y: Any, row: Any, k: Any, threads: int) -> None:
    d = int(Y.shape[1])

    def store() -> None:
        gate = e.let(X[row, k])
        # Held below the largest float: WGSL leaves open what an overflow gives.
        grown = T.exp(T.min(T.float32(0) - gate, T.float32(87)))
        T.buffer_store(Y, gate / (T.float32(1) + grown) * X[row, k + d], [row, k])

    if d % threads:
        e.when(k < d, store)
    else:
        store()


def embedding(spec: EmbeddingSpec, limits: GpuLimits) -> PrimFunc:
    """(tokens i32 [n], *stored, y float32 [n, dim])."""
    shapes = stored_shapes(spec.as_linear())
    d, threads = spec.dim, limits.block_for(-(-spec.dim // WORD))

    def emit(Token: Any, tensors: tuple[Any, ...], Y: Any, n: Any) -> None:
        weights = Weights(spec.as_linear(), tensors)
        e.launch((n,), threads, lambda row, t: _copy(weights, Token, Y, row, t, threads))

    if len(shapes) == 1:

        @T.prim_func(s_tir=True, private=True, check_well_formed=False)
        def lookup(tokens: T.handle, table: T.handle, y: T.handle) -> None:
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            n = T.int64()
            Token = T.match_buffer(tokens, (n,), "int32")
            W = T.match_buffer(table, shapes[0][0], shapes[0][1])
            Y = T.match_buffer(y, (n, d), "float32")
            emit(Token, (W,), Y, n)

        return lookup

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def lookup_q4(tokens: T.handle, words: T.handle, scales: T.handle, y: T.handle) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n = T.int64()
        Token = T.match_buffer(tokens, (n,), "int32")
        W = T.match_buffer(words, shapes[0][0], shapes[0][1])
        S = T.match_buffer(scales, shapes[1][0], shapes[1][1])
        Y = T.match_buffer(y, (n, d), "float32")
        emit(Token, (W, S), Y, n)

    return lookup_q4


def _copy(weights: Weights, Token: Any, Y: Any, row: Any, thread: Any, threads: int) -> None:
    d, token = int(Y.shape[1]), e.let(Token[row])

    def store(word: Any) -> None:
        for i, value in enumerate(weights.word(token, word)):
            column = word * WORD + i
            if d % WORD:
                e.when(
                    column < d,
                    lambda v=value, c=column: T.buffer_store(Y, v, [row, c]),
                )
            else:
                T.buffer_store(Y, value, [row, column])

    e.over(-(-d // WORD), threads, thread, store)

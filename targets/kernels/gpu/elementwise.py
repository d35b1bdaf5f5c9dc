"""SwiGLU, and rows of an embedding table."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import EmbeddingSpec, SwiGLUSpec
from . import emit as e
from .limits import GpuLimits
from .weights import WORD, WORDS, Weights, stored_parameters


def swiglu(spec: SwiGLUSpec, limits: GpuLimits) -> PrimFunc:
    """(gate_up [n, 2d], y [n, d]), float32: y = gate / (1 + exp(-gate)) * up."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(block: Any, row: Any, t: Any) -> None:
            _gate(b["gate_up"], b["y"], row, block * threads + t, threads)

        e.launch((-(-d // threads), sizes["n"]), threads, block)

    return e.prim_func([("gate_up", ("n", 2 * d), "float32"), ("y", ("n", d), "float32")], emit)


def _gate(X: Any, Y: Any, row: Any, k: Any, threads: int) -> None:
    d = int(Y.shape[1])

    def store() -> None:
        T.buffer_store(Y, gated(X[row, k], X[row, k + d]), [row, k])

    if d % threads:
        e.when(k < d, store)
    else:
        store()


def gated(gate: Any, up: Any) -> Any:
    """silu(gate) * up."""
    x = e.let(gate)
    # Held below the largest float: WGSL leaves open what an overflow gives.
    grown = T.exp(T.min(T.float32(0) - x, T.float32(87)))
    return x / (T.float32(1) + grown) * up


def embedding(spec: EmbeddingSpec, limits: GpuLimits) -> PrimFunc:
    """(tokens i32 [n], *stored, y float32 [n, dim])."""
    stored = stored_parameters(spec.as_linear())
    d, threads = spec.dim, limits.block_for(-(-spec.dim // WORD))

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        weights = Weights(spec.as_linear(), tuple(b[p[0]] for p in stored))
        e.launch(
            (sizes["n"],),
            threads,
            lambda row, t: _copy(weights, b["tokens"], b["y"], row, t, threads),
        )

    parameters: list[e.Parameter] = [("tokens", ("n",), "int32"), *stored]
    return e.prim_func([*parameters, ("y", ("n", d), "float32")], emit)


def _copy(weights: Weights, Token: Any, Y: Any, row: Any, thread: Any, threads: int) -> None:
    d, token = int(Y.shape[1]), e.let(Token[row])

    def store(word: Any) -> None:
        values = weights.word(token, word)
        if weights.has_scales:
            scale = weights.scale(token, word // WORDS)
            values = [v * scale for v in values]
        for i, value in enumerate(values):
            column = word * WORD + i
            if d % WORD:
                e.when(
                    column < d,
                    lambda v=value, c=column: T.buffer_store(Y, v, [row, c]),
                )
            else:
                T.buffer_store(Y, value, [row, column])

    e.over(-(-d // WORD), threads, thread, store)

"""SwiGLU, other activation functions, and embedding lookup, on GPUs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import ActivationSpec, EmbeddingSpec, SwiGLUSpec

from . import emit as e
from .block_weights import matrix
from .limits import GpuLimits
from .weights import WORD, WORDS, Weights, stored_parameters


def swiglu(spec: SwiGLUSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of SwiGLU: y = gate / (1 + exp(-gate)) * up.

    (gate_up [n, 2d], y [n, d]), float32
    """
    d, threads = spec.dim, limits.block_for(spec.dim)

    return _pointwise(2 * d, d, threads, lambda X, row, k: gated(X[row, k], X[row, k + d]))


def activation(spec: ActivationSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of an activation (x [n, d] or [n, 2d] if gated, y [n, d]), float32."""
    d, threads = spec.dim, limits.block_for(spec.dim)

    def value(X: Any, row: Any, k: Any) -> Any:
        y = _FORMULAS[spec.kind](e.let(X[row, k]))
        return y * X[row, k + d] if spec.gated else y

    return _pointwise(2 * d if spec.gated else d, d, threads, value)


def _pointwise(width: int, d: int, threads: int, value: Callable[[Any, Any, Any], Any]) -> PrimFunc:
    """Return a PrimFunc (x [n, width], y [n, d]) that sets each y to `value(x, row, column)`."""

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        def block(block: Any, row: Any, t: Any) -> None:
            k = block * threads + t

            def store() -> None:
                T.buffer_store(b["y"], value(b["x"], row, k), [row, k])

            if d % threads:
                e.when(k < d, store)
            else:
                store()

        e.launch((-(-d // threads), sizes["n"]), threads, block)

    return e.prim_func([("x", ("n", width), "float32"), ("y", ("n", d), "float32")], emit)


def gated(gate: Any, up: Any) -> Any:
    """Emit silu(gate) * up."""
    return _silu(e.let(gate)) * up


def _silu(x: Any, steepness: Any = None) -> Any:
    """Emit x / (1 + exp(-steepness)), the SiLU if `steepness` is None and so x itself."""
    # The argument of exp is clamped so that it cannot overflow: in WGSL the result of an overflow
    # is undefined.
    minus = T.float32(0) - (x if steepness is None else steepness)
    return x / (T.float32(1) + T.exp(T.min(minus, T.float32(87))))


def gelu_tanh(x: Any) -> Any:
    """Emit the tanh GELU, x / 2 * (1 + tanh(u)) = x / (1 + exp(-2u)).

    u = sqrt(2 / pi) * (x + 0.044715 x^3).
    """
    twice = 2 * math.sqrt(2 / math.pi)
    return _silu(x, e.let(x * e.fma(x * x, e.number(0.044715 * twice), e.number(twice))))


# Approximation of erf by Abramowitz and Stegun, 7.1.26, with error 1.5e-7;
# kernels/cpu/elementwise.py has the formula.
_ERF_P = 0.3275911
_ERF_A = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


def _gelu(x: Any) -> Any:
    """Emit the exact GELU, x / 2 * (1 + erf(x / sqrt(2)))."""
    z = e.let(T.max(x, T.float32(0) - x) * e.number(math.sqrt(0.5)))
    t = e.let(T.float32(1) / e.fma(z, e.number(_ERF_P), T.float32(1)))
    total = e.number(_ERF_A[-1])
    for a in reversed(_ERF_A[:-1]):
        total = e.let(e.fma(total, t, e.number(a)))
    half = e.let(total * t * T.exp(T.max(T.float32(0) - z * z, T.float32(-87))) * T.float32(0.5))
    return x * T.if_then_else(x < T.float32(0), half, T.float32(1) - half)


def _relu(x: Any) -> Any:
    return T.max(x, T.float32(0))


def _relu2(x: Any) -> Any:
    y = e.let(_relu(x))
    return y * y


_FORMULAS: dict[str, Callable[[Any], Any]] = {
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": gelu_tanh,
    "relu": _relu,
    "relu2": _relu2,
}


def embedding(spec: EmbeddingSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of a lookup (tokens i32 [n], *stored, y float32 [n, dim])."""
    stored = stored_parameters(spec.as_linear())
    d, threads = spec.dim, limits.block_for(-(-spec.dim // WORD))

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        weights = matrix(spec.as_linear(), tuple(b[p[0]] for p in stored))
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

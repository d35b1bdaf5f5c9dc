"""Attention with a LayerNorm of each query and key head, before RoPE.

Axes: n rows, d hidden, h query heads, g kv heads, e head dim.
"""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from . import decoder
from .arch import Word, constant, rename, stack
from .norms import LayerNorm
from .state import PagedKV


class SharedNorm(nn.Module):
    """LayerNorm whose weight and bias [e] all heads share."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        self.heads, self.head_dim = heads, head_dim
        self.norm = LayerNorm(head_dim, eps)

    def forward(self, x: Tensor) -> Tensor:
        """x [n, heads * e] -> [n, heads * e]."""
        n, width = x.shape[0], self.heads * self.head_dim
        each = self.norm(op.reshape(x, (n * self.heads, self.head_dim)))
        return op.reshape(each, (n, width))


class OwnNorm(nn.Module):
    """LayerNorm with a weight for each head [heads, e] and no bias."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        self.heads, self.head_dim = heads, head_dim
        self.unit = LayerNorm(head_dim, eps, bias=False)  # of weight one
        self.factors = nn.Parameter((heads, head_dim))

    def forward(self, x: Tensor) -> Tensor:
        """x [n, heads * e] -> [n, heads * e]."""
        n, width = x.shape[0], self.heads * self.head_dim
        each = self.unit(op.reshape(x, (n * self.heads, self.head_dim)))
        return op.reshape(each, (n, width)) * op.reshape(self.factors, (width,))


class Attention(decoder.Attention):
    """Attention with an optional LayerNorm of each query and key head (`qk_layernorm`)."""

    norm: type[nn.Module] = SharedNorm

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        shape, eps = self.shape, cfg.norm_eps

        def made(heads: int) -> nn.Module | None:
            return self.norm(heads, shape.head_dim, eps) if cfg.qk_layernorm else None

        self.q_layernorm, self.k_layernorm = made(shape.heads), made(shape.kv_heads)

    def forward(self, x: Tensor, cache: PagedKV, layer: int) -> Tensor:
        """x [n, d] -> [n, d]."""
        e, h, g = self.shape.head_dim, self.shape.heads, self.shape.kv_heads
        qkv = self.qkv_proj(x)
        if self.q_layernorm is not None and self.k_layernorm is not None:
            q, k, v = op.split(qkv, [h * e, (h + g) * e], axis=-1)
            qkv = op.concat([self.q_layernorm(q), self.k_layernorm(k), v], dim=-1)
        return self.o_proj(cache.attend(layer, qkv, self.shape))


class OwnNormAttention(Attention):
    norm = OwnNorm


# Of checkpoints with a tensor for each head.
OWN: tuple[Word, ...] = tuple(
    word
    for name in ("q_layernorm", "k_layernorm")
    for word in (
        constant(f"{name}.unit.weight", 1.0),
        stack(f"{name}.factors", f"{name}.norms.{{}}.weight"),
    )
)
# Of others.
SHARED: tuple[Word, ...] = tuple(
    rename(f"{name}.norm.{kind}", f"{name}.{kind}")
    for name in ("q_layernorm", "k_layernorm")
    for kind in ("weight", "bias")
)

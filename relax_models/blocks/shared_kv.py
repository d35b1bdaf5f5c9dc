"""Attention of models whose last layers read the KV caches of earlier ones (Gemma 3n and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import GivenName, qkv_heads

from .. import decoder
from ..config import CountOrZero
from ..step import Batch, attention


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingConfig(decoder.WindowedConfig):
    """Configuration of a model whose last layers read KV caches of layers before."""

    num_kv_shared_layers: CountOrZero = 0

    @property
    def first_shared(self) -> int:
        """Return the first layer that reads the KV cache of an earlier layer."""
        return max(0, self.num_hidden_layers - self.num_kv_shared_layers)

    @property
    def shared(self) -> range:
        """Return the layers that read the KV cache of an earlier layer."""
        return range(self.first_shared, self.num_hidden_layers)


class Attention(nn.Module):
    """Attention with norms of q and k heads; qkv has k and v only if the layer computes them."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.shape = shape = cfg.attention_shape(layer)
        biases, d = cfg.biases(), cfg.hidden_size
        h, e = shape.heads, shape.head_dim
        width = qkv_heads(h, shape.kv_heads, shape.kv) * e

        def projection(kv: GivenName) -> nn.Module | None:
            return nn.Linear(d, width, bias=biases.qkv) if shape.kv == kv else None

        self.qkv_proj, self.qk_proj = projection("both"), projection("keys")
        self.q_proj = projection("none")
        self.o_proj = nn.Linear(h * e, d, bias=biases.out)
        self.q_norm = cfg.norm(e)
        self.k_norm = None if shape.kv == "none" else cfg.norm(e)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        projection = self.qkv_proj or self.qk_proj or self.q_proj
        assert projection is not None
        q_norm = self.q_norm.factor()
        norms = (q_norm, q_norm if self.k_norm is None else self.k_norm.factor())
        return self.o_proj(attention(projection(x), batch, self.shape, norms))

"""Multi-head latent attention (DeepSeek V2): the KV cache has one latent per token for all heads.

A head's key is a matrix times the latent, and a rotated part that all heads share; its value is
another matrix times the latent. Neither key nor value is computed (weight absorption): the query is
multiplied by the key's matrix, so that all heads attend to the latents themselves, and the
attention output by the value's. For the kernels this is attention of `heads` queries over one
key-value head of `rank + rotated` elements, whose key is also its value: [rotated, latent]. GPUs
store it once; CPUs twice, transposed for scores and by token for sums.

Axes: n rows, d hidden, h heads, c rank, r rotated, k elements of a key that do not rotate,
v elements of a value, e = r + c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import RotatedFirst, drop, heads, inv_freq, reorder
from ..config import Size
from ..layers.norms import RMSNorm
from ..step import Batch, attention
from .experts import ExpertLinear


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentConfig(decoder.DecoderConfig):
    """Configuration fields of families with latent attention."""

    # for an absent field; null means None
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"q_lora_rank": 1536}
    kv_lora_rank: Size = 512  # size c of the latent
    # size of the queries' latent; None: one linear computes the queries
    q_lora_rank: Size | None = None
    qk_nope_head_dim: Size = 128  # elements k of a key that do not rotate
    qk_rope_head_dim: Size = 64  # elements r of a key that rotate
    v_head_dim: Size = 128  # elements v of a value
    attention_bias: bool = False

    def problems(self) -> Iterator[str]:
        """Yield an error for an odd number of rotated elements."""
        if self.qk_rope_head_dim % 2:
            yield f"qk_rope_head_dim: found {self.qk_rope_head_dim}; they rotate in pairs"

    @property
    def head_size(self) -> int:
        """Return the elements of a token in the KV cache: rotated part and latent."""
        return self.qk_rope_head_dim + self.kv_lora_rank

    @property
    def paired(self) -> bool:
        """Return whether the checkpoint rotates neighbouring dimensions (2i, 2i + 1)."""
        return True

    @property
    def context(self) -> int:
        """Return the context length in tokens for which the RoPE table is correct."""
        table = inv_freq(self.rope, self.qk_rope_head_dim, self.max_position_embeddings)
        return table.max_context or self.max_position_embeddings

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        """Return the attention shape: queries over latents.

        YaRN scales q and k, so its factor enters the scores squared.
        """
        table = inv_freq(self.rope, self.qk_rope_head_dim, self.max_position_embeddings)
        scale = float((self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5)
        weight, factor = self.rope.mscale_all_dim, self.rope.factor
        if self.rope.kind != "default" and weight and factor > 1:
            scale *= (0.1 * weight * math.log(factor) + 1.0) ** 2
        return AttentionShape(
            cache=layer,
            heads=self.num_attention_heads,
            kv_heads=1,
            head_dim=self.head_size,
            scale=scale,
            inv_freq=tuple(float(f) for f in table.inv_freq),
            rope_scaling=table.attention_factor,
            latent=True,
        )


class Attention(nn.Module):
    def __init__(self, cfg: Any, layer: int) -> None:
        self.shape = cfg.attention_shape(layer)
        d, h, bias = cfg.hidden_size, cfg.num_attention_heads, cfg.attention_bias
        self.rotated, self.rank = cfg.qk_rope_head_dim, cfg.kv_lora_rank
        self.key, self.value = cfg.qk_nope_head_dim, cfg.v_head_dim
        queries, rank = h * (self.key + self.rotated), cfg.q_lora_rank
        self.q_a_proj = nn.Linear(d, rank, bias=bias) if rank else None
        self.q_a_layernorm = RMSNorm(rank, 1e-6) if rank else None
        self.q_proj = None if rank else nn.Linear(d, queries, bias=False)
        self.q_b_proj = nn.Linear(rank, queries, bias=False) if rank else None
        self.kv_a_proj_with_mqa = nn.Linear(d, self.rotated + self.rank, bias=bias)
        self.kv_a_layernorm = RMSNorm(self.rank, 1e-6)
        self.k_up_proj = ExpertLinear(h, self.key, self.rank)
        self.v_up_proj = ExpertLinear(h, self.rank, self.value)
        self.o_proj = nn.Linear(h * self.value, d, bias=bias)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        n, h, r, c = x.shape[0], self.shape.heads, self.rotated, self.rank
        q = self.at_positions(self._queries(x, n), batch.positions)
        rotated, latent = op.split(self.kv_a_proj_with_mqa(x), [r], axis=-1)
        kv = op.concat([rotated, self.kv_a_layernorm(latent)], dim=-1)
        out = attention(op.concat([q, kv, kv], dim=-1), batch, self.shape)
        _, gathered = op.split(op.reshape(out, (n * h, r + c)), [r], axis=-1)
        return self.o_proj(op.reshape(self.v_up_proj.each(gathered), (n, h * self.value)))

    def at_positions(self, q: Tensor, positions: Tensor) -> Tensor:
        """Return queries [n, h * e] as a family scales them at positions int32 [n]."""
        return q

    def _queries(self, x: Tensor, n: Any) -> Tensor:
        """Compute queries over latents: x [n, d] -> [n, h * e]."""
        h, r = self.shape.heads, self.rotated
        if self.q_proj is not None:
            q = self.q_proj(x)
        else:
            assert self.q_a_proj and self.q_a_layernorm and self.q_b_proj
            q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        each = op.reshape(q, (n * h, r + self.key))
        rotated, rest = op.split(each, [r], axis=-1)
        q = op.concat([rotated, self.k_up_proj.each(rest)], dim=-1)
        return op.reshape(q, (n, h * (r + self.rank)))


def queries(cfg: LatentConfig) -> RotatedFirst:
    """Return the row order of the projections of the queries."""
    return RotatedFirst(cfg.qk_nope_head_dim, cfg.qk_rope_head_dim, cfg.paired)


def _latents(cfg: LatentConfig) -> RotatedFirst:
    return RotatedFirst(cfg.kv_lora_rank, cfg.qk_rope_head_dim, cfg.paired)


def _rows_per_head(cfg: LatentConfig) -> int:
    return cfg.qk_nope_head_dim + cfg.v_head_dim


# Weight rules of the latents.
LATENTS = (
    reorder("self_attn.q_b_proj.weight", queries),
    reorder("kv_a_proj_with_mqa.weight", _latents),
    reorder("kv_a_proj_with_mqa.bias", _latents),
    heads(
        "k_up_proj.weight",
        "kv_b_proj.weight",
        lambda cfg: (0, cfg.qk_nope_head_dim, _rows_per_head(cfg)),
        transposed=True,
    ),
    heads(
        "v_up_proj.weight",
        "kv_b_proj.weight",
        lambda cfg: (cfg.qk_nope_head_dim, _rows_per_head(cfg), _rows_per_head(cfg)),
    ),
    drop("rotary_emb.inv_freq"),
)
WEIGHTS = (reorder("self_attn.q_proj.weight", queries), *LATENTS)

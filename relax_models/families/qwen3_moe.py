"""Qwen3 mixtures of experts: Qwen3 with sparse feed-forwards in some or all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture
from ..blocks import experts
from ..blocks.experts import STACKED, Experts
from ..config import Count, Range, Size
from ..decoder import WEIGHTS
from . import qwen3


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class SparseConfig:
    """Configuration fields of Qwen's mixtures of experts."""

    ALIASES: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    decoder_sparse_step: Count = 1
    mlp_only_layers: tuple[Annotated[int, Range(0, 2**12)], ...] = ()
    moe_intermediate_size: Size = 768
    num_experts_per_tok: Count = 8
    num_experts: Count = 128
    norm_topk_prob: bool = False

    def experts_of(self, layer: int) -> Experts | None:
        if layer in self.mlp_only_layers or (layer + 1) % self.decoder_sparse_step:
            return None
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            normalized=self.norm_topk_prob,
        )
        return Experts(routing=routing, size=self.moe_intermediate_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3MoeConfig(SparseConfig, qwen3.Qwen3Config):
    """Fields of Qwen3Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    head_dim: Size | None = None

    def is_windowed(self, layer: int) -> bool:
        return True


class Block(experts.Block):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="qwen3_moe", config=Qwen3MoeConfig, model=CausalLM, weights=(*STACKED, *WEIGHTS)
)

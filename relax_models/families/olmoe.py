"""OLMoE mixtures of experts: norms over all heads of q and of k, experts in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture
from ..blocks import experts
from ..blocks.experts import STACKED, Experts
from ..config import Count, Epsilon, Positions, Range
from ..decoder import WEIGHTS, Biases
from ..layers.activations import clipped


@dataclass(frozen=True, slots=True, kw_only=True)
class OlmoeConfig(decoder.DecoderConfig):
    """Fields of Olmoe's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}
    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    num_experts_per_tok: Count = 8
    num_experts: Count = 64
    norm_topk_prob: bool = False
    clip_qkv: Annotated[float, Range(1e-3, 1e6)] | None = None

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def experts_of(self, layer: int) -> Experts:
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            normalized=self.norm_topk_prob,
        )
        return Experts(routing=routing, size=self.intermediate_size)


class Attention(decoder.ProjectionNormAttention):
    """Attention that clips q, k and v to [-clip, clip] after the norms, if `clip_qkv` is set."""

    def __init__(self, cfg: OlmoeConfig, layer: int) -> None:
        super().__init__(cfg, layer)
        self.clip = cfg.clip_qkv

    def qkv(self, x: Tensor) -> Tensor:
        """Compute q, k, v with their norms, clipped: x [n, d] -> [n, (h + 2g) * e]."""
        projected = super().qkv(x)
        return projected if self.clip is None else clipped(projected, self.clip)


class Block(experts.Block):
    attention = Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="olmoe", config=OlmoeConfig, model=CausalLM, weights=(*STACKED, *WEIGHTS))

"""AFMoE mixtures of experts (Trinity): gated attention, and norms before and after each part.

Layers with a sliding window have RoPE, the others none. Experts are chosen by the sigmoid of their
logit plus a bias, in all but the first layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from wherry.ops import AttentionShape, RouteSpec

from .. import decoder
from ..arch import Architecture, RopeConfig, rename
from ..blocks import experts
from ..blocks.experts import EACH, Experts
from ..blocks.gated_attention import GatedAttention
from ..config import Count, CountOrZero, Epsilon, Factor, Positions, Size
from ..decoder import WEIGHTS, Biases, ModelScales


@dataclass(frozen=True, slots=True, kw_only=True)
class AfmoeConfig(decoder.WindowedConfig):
    """Fields of Afmoe's config.json that shape the computation."""

    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "n_group": (1,),
        "num_expert_groups": (1,),
        "num_limited_groups": (1,),
        "route_norm": (True,),
        "score_func": ("sigmoid",),
        "topk_group": (1,),
    }
    # Fields about training, and about the program that runs the model.
    IGNORED: ClassVar[tuple[str, ...]] = ("load_balance_coeff", "use_grouped_mm")
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 16384
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    sliding_window: Positions | None = 1024
    global_attn_every_n_layers: Count = 4
    mup_enabled: bool = False  # whether embeddings are multiplied by the root of hidden_size
    moe_intermediate_size: Size = 1408
    num_dense_layers: CountOrZero = 1
    num_experts: Count = 64
    num_experts_per_tok: Count = 6
    num_shared_experts: CountOrZero = 2
    route_scale: Factor = 1.0

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % self.global_attn_every_n_layers != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.rope if self.windowed(layer) else None

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(embedding=sqrt(self.hidden_size) if self.mup_enabled else 1.0)

    def experts_of(self, layer: int) -> Experts | None:
        if layer < self.num_dense_layers:
            return None
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            score="sigmoid",
            bias=True,
            normalized=True,
            scale=float(self.route_scale),
        )
        size = self.moe_intermediate_size
        return Experts(routing=routing, size=size, shared=size * self.num_shared_experts)


class Block(decoder.SandwichBlock):
    attention = GatedAttention

    def feed_forward(self, cfg: AfmoeConfig, layer: int) -> nn.Module:
        return experts.feed_forward(cfg, layer)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="afmoe",
    config=AfmoeConfig,
    model=CausalLM,
    weights=(
        *EACH,
        rename("mlp.router.weight", "mlp.router.gate.weight"),
        rename("mlp.e_score_correction_bias", "mlp.expert_bias"),
        *WEIGHTS,
        rename("pre_feedforward_layernorm.weight", "pre_mlp_layernorm.weight"),
        rename("post_feedforward_layernorm.weight", "post_mlp_layernorm.weight"),
    ),
)

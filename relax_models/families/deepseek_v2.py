"""DeepSeek V2 mixtures of experts: latent attention, shared experts, and a softmax over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ..arch import Architecture, spare_layers
from ..blocks import experts, latent
from ..blocks.experts import STACKED, Experts
from ..config import Count, Size
from ..decoder import WEIGHTS as DECODER
from . import glm4_moe


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepseekV2Config(glm4_moe.GroupedConfig, latent.LatentConfig):
    """Fields of DeepseekV2's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = glm4_moe.GroupedConfig.ALIASES
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mlp_bias": (False,),
        "moe_layer_freq": (1,),
        "scoring_func": ("softmax",),
    }
    # Fields about training, and fields that follow from others.
    IGNORED: ClassVar[tuple[str, ...]] = ("aux_loss_alpha", "seq_aux", "ep_size", "qk_head_dim")
    moe_intermediate_size: Size = 1407
    n_shared_experts: glm4_moe.Few = 2
    n_routed_experts: Count = 64
    topk_method: Literal["greedy", "group_limited_greedy"] = "greedy"

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and normalization of router weights.

        transformers never normalizes them, whatever `norm_topk_prob` says.
        """
        yield from glm4_moe.GroupedConfig.problems(self)
        if self.norm_topk_prob:
            yield "norm_topk_prob: found True, supported is False"

    def experts_of(self, layer: int) -> Experts | None:
        spec = glm4_moe.GroupedConfig.experts_of(self, layer)
        if spec is None:
            return None
        routing = replace(spec.routing, score="softmax", bias=False, group_top=1, normalized=False)
        if self.topk_method == "greedy":
            routing = replace(routing, groups=1, kept_groups=1)
        return replace(spec, routing=routing)


class Block(experts.Block):
    attention = latent.Attention


class Decoder(experts.Decoder):
    block = Block


class CausalLM(experts.CausalLM):
    decoder = Decoder


WEIGHTS = (
    *STACKED,
    *latent.WEIGHTS,
    *DECODER,
    spare_layers("model.layers.*.*", "num_nextn_predict_layers"),
)

ARCH = Architecture(name="deepseek_v2", config=DeepseekV2Config, model=CausalLM, weights=WEIGHTS)

"""DeepSeek V2 mixtures of experts: latent attention, shared experts, and a softmax over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ..arch import Architecture
from ..blocks import latent
from ..blocks.experts import Experts
from ..blocks.grouped_experts import GroupedConfig
from ..config import Count, CountOrZero, Size
from ..lineages import deepseek


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepseekV2Config(GroupedConfig, latent.LatentConfig):
    """Fields of DeepseekV2's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = GroupedConfig.ALIASES
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mlp_bias": (False,),
        "moe_layer_freq": (1,),
        "scoring_func": ("softmax",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = deepseek.UNREAD
    moe_intermediate_size: Size = 1407
    n_shared_experts: CountOrZero = 2
    n_routed_experts: Count = 64
    topk_method: Literal["greedy", "group_limited_greedy"] = "greedy"

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and normalization of router weights.

        transformers never normalizes them, whatever `norm_topk_prob` says.
        """
        yield from GroupedConfig.problems(self)
        if self.norm_topk_prob:
            yield "norm_topk_prob: found True, supported is False"

    def experts_of(self, layer: int) -> Experts | None:
        spec = GroupedConfig.experts_of(self, layer)
        if spec is None:
            return None
        routing = replace(spec.routing, score="softmax", bias=False, group_top=1, normalized=False)
        if self.topk_method == "greedy":
            routing = replace(routing, groups=1, kept_groups=1)
        return replace(spec, routing=routing)


ARCH = Architecture(
    name="deepseek_v2", config=DeepseekV2Config, model=deepseek.CausalLM, weights=deepseek.WEIGHTS
)

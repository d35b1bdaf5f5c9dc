"""DeepSeek V3 mixtures of experts: V2 whose experts are chosen by a sigmoid and a bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture
from ..blocks import latent
from ..blocks.grouped_experts import GroupedConfig
from ..config import Count, CountOrZero, Factor, Positions, Size
from ..drafts import mtp
from ..lineages import deepseek


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepseekV3Config(GroupedConfig, latent.LatentConfig):
    """Fields of DeepseekV3's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = GroupedConfig.ALIASES
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "moe_layer_freq": (1,),
        "scoring_func": ("sigmoid",),
        "topk_method": ("noaux_tc",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = deepseek.UNREAD
    max_position_embeddings: Positions = 4096
    moe_intermediate_size: Size = 2048
    n_shared_experts: CountOrZero = 1
    n_routed_experts: Count = 256
    routed_scaling_factor: Factor = 2.5
    n_group: Count = 8
    topk_group: Count = 4
    first_k_dense_replace: CountOrZero = 3
    norm_topk_prob: bool = True
    rope_interleave: bool = True

    @property
    def paired(self) -> bool:
        return self.rope_interleave


ARCH = Architecture(
    name="deepseek_v3",
    config=DeepseekV3Config,
    model=deepseek.CausalLM,
    weights=deepseek.WEIGHTS,
    drafts=mtp.after_layers(deepseek.Block),
)

"""GLM-4.7-Flash mixtures of experts: DeepSeek V3 of another size, the first layer dense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture
from ..blocks import latent
from ..blocks.grouped_experts import GroupedConfig
from ..config import Count, CountOrZero, Epsilon, Factor, Positions, Size
from ..drafts import mtp
from ..layer_kinds import SPARSE, feed_forward_problems
from ..lineages import deepseek


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm4MoeLiteConfig(GroupedConfig, latent.LatentConfig):
    """Fields of Glm4MoeLite's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"q_lora_rank": 768}
    ALIASES: ClassVar[Mapping[str, str]] = {
        **GroupedConfig.ALIASES,
        "head_dim": "qk_rope_head_dim",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "moe_layer_freq": (1,),
        "scoring_func": ("sigmoid",),
        "topk_method": ("noaux_tc",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = deepseek.UNREAD
    max_position_embeddings: Positions = 202752
    rms_norm_eps: Epsilon = 1e-5
    qk_nope_head_dim: Size = 192
    v_head_dim: Size = 256
    moe_intermediate_size: Size = 1536
    num_experts_per_tok: Count = 4
    n_shared_experts: CountOrZero = 1
    n_routed_experts: Count = 64
    routed_scaling_factor: Factor = 1.8
    first_k_dense_replace: CountOrZero = 1
    norm_topk_prob: bool = True
    rope_interleave: bool = True
    mlp_layer_types: tuple[str, ...] = ()  # (): first_k_dense_replace decides

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and heads that rotate in part."""
        yield from GroupedConfig.problems(self)
        yield from feed_forward_problems(self.mlp_layer_types, self.num_hidden_layers)
        if self.rope.partial_rotary_factor != 1.0:
            yield f"partial_rotary_factor: found {self.rope.partial_rotary_factor}, supported is 1"

    @property
    def paired(self) -> bool:
        return self.rope_interleave

    def sparse(self, layer: int) -> bool:
        if layer < len(self.mlp_layer_types):
            return self.mlp_layer_types[layer] == SPARSE
        return layer >= self.first_k_dense_replace


ARCH = Architecture(
    name="glm4_moe_lite",
    config=Glm4MoeLiteConfig,
    model=deepseek.CausalLM,
    weights=deepseek.WEIGHTS,
    drafts=mtp.after_layers(deepseek.Block),
)

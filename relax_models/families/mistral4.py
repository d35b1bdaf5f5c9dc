"""Mistral 4 mixtures of experts: DeepSeek's latent attention, and queries as in Ministral 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from ..arch import Architecture, concat
from ..blocks import experts, latent
from ..blocks.experts import DOWN, GATE_UP, Experts
from ..blocks.grouped_experts import GroupedConfig
from ..blocks.temperature import TemperedConfig, tempered
from ..config import Count, CountOrZero, Positions, Size
from ..lineages import deepseek

_YARN: Mapping[str, Any] = {
    "type": "yarn",
    "rope_theta": 10000.0,
    "factor": 128.0,
    "original_max_position_embeddings": 8192,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
    "llama_4_scaling_beta": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistral4Config(TemperedConfig, GroupedConfig, latent.LatentConfig):
    """Fields of Mistral4's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"q_lora_rank": 1024, "rope_parameters": _YARN}
    ALIASES: ClassVar[Mapping[str, str]] = GroupedConfig.ALIASES
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "moe_layer_freq": (1,),
        "scoring_func": ("softmax",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = deepseek.UNREAD
    max_position_embeddings: Positions = 1048576
    kv_lora_rank: Size = 256
    qk_nope_head_dim: Size = 64
    moe_intermediate_size: Size = 2048
    num_experts_per_tok: Count = 4
    n_shared_experts: CountOrZero = 1
    norm_topk_prob: bool = True
    rope_interleave: bool = True

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and a fraction of heads that RoPE cannot have."""
        yield from GroupedConfig.problems(self)
        share, size = self.rope.partial_rotary_factor, self.qk_rope_head_dim
        if share != 1.0 and round(share * (self.qk_nope_head_dim + size)) != size:
            yield f"partial_rotary_factor: found {share}, but qk_rope_head_dim is {size}"

    @property
    def paired(self) -> bool:
        return self.rope_interleave

    def experts_of(self, layer: int) -> Experts | None:
        spec = GroupedConfig.experts_of(self, layer)
        if spec is None:
            return None
        return replace(spec, routing=replace(spec.routing, score="softmax", bias=False))


class Attention(latent.Attention):
    def __init__(self, cfg: Mistral4Config, layer: int) -> None:
        super().__init__(cfg, layer)
        self.temperature = cfg.temperature

    def at_positions(self, q: Tensor, positions: Tensor) -> Tensor:
        if self.temperature is None:
            return q
        return tempered(q, positions, self.shape.heads * self.shape.head_dim, self.temperature)


class Block(experts.Block):
    attention = Attention


class Decoder(experts.Decoder):
    block = Block


class CausalLM(experts.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="mistral4",
    config=Mistral4Config,
    model=CausalLM,
    weights=(
        concat(GATE_UP, "mlp.experts.gate_up_proj"),
        concat(DOWN, "mlp.experts.down_proj"),
        *deepseek.WEIGHTS,
    ),
)

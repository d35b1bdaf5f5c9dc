"""Mixtral's configuration, and the weight rules with its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import rename, stack
from ..blocks.experts import DOWN, GATE_UP, Experts
from ..config import Count, Epsilon, Positions

_EXPERT = "block_sparse_moe.experts.{}"

SPARSE_MOE = (
    stack(GATE_UP, f"{_EXPERT}.w1.weight", f"{_EXPERT}.w3.weight"),
    stack(DOWN, f"{_EXPERT}.w2.weight"),
    rename("mlp.router.weight", "block_sparse_moe.gate.weight"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtralConfig(decoder.WindowedConfig):
    """Fields of Mixtral's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_theta": 1000000.0}
    ALIASES: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    IGNORED: ClassVar[tuple[str, ...]] = ("router_jitter_noise",)  # affects training alone
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    num_experts_per_tok: Count = 2
    num_local_experts: Count = 8

    def experts_of(self, layer: int) -> Experts:
        routing = RouteSpec(
            experts=self.num_local_experts, top_k=self.num_experts_per_tok, normalized=True
        )
        return Experts(routing=routing, size=self.intermediate_size)

"""Granite's multipliers, its configurations, and the weight rules of its experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from wherry.ops import AttentionShape, RouteSpec

from ..arch import concat, rename, stack
from ..blocks.experts import DOWN, EXPERT, GATE_UP, Experts
from ..config import Count, Factor, Range
from ..decoder import WEIGHTS, ModelScales
from .llama import LlamaConfig


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class ScaledConfig:
    """Multipliers of Granite's families."""

    embedding_multiplier: Factor = 1.0
    attention_multiplier: Factor = 1.0  # scale of attention scores, instead of 1 / sqrt(e)
    residual_multiplier: Factor = 1.0
    logits_scaling: Factor = 1.0  # divisor of logits

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        # defined by the class that this one is combined with
        shape: AttentionShape = super().attention_shape(layer)  # type: ignore[misc]
        return replace(shape, scale=float(self.attention_multiplier))

    def scales(self) -> ModelScales:
        return ModelScales(
            embedding=float(self.embedding_multiplier),
            residual=float(self.residual_multiplier),
            logits=1 / self.logits_scaling,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteConfig(ScaledConfig, LlamaConfig):
    """Fields of Granite's config.json that shape the computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteMoeConfig(GraniteConfig):
    """Fields of GraniteMoe's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    num_local_experts: Count = 8
    num_experts_per_tok: Count = 2
    shared_intermediate_size: Annotated[int, Range(0, 2**20)] = 0

    def experts_of(self, layer: int) -> Experts | None:
        routing = RouteSpec(
            experts=self.num_local_experts, top_k=self.num_experts_per_tok, normalized=True
        )
        return Experts(
            routing=routing, size=self.intermediate_size, shared=self.shared_intermediate_size
        )


EXPERTS = (
    stack(
        GATE_UP,
        f"{EXPERT}.gate_proj.weight",
        f"{EXPERT}.up_proj.weight",
        fused="block_sparse_moe.input_linear.weight",
    ),
    stack(DOWN, f"{EXPERT}.down_proj.weight", fused="block_sparse_moe.output_linear.weight"),
    concat(
        "mlp.shared_experts.gate_up_proj.weight",
        "shared_mlp.gate_proj.weight",
        "shared_mlp.up_proj.weight",
        fused="shared_mlp.input_linear.weight",
    ),
    *WEIGHTS,
    rename("mlp.shared_experts.down_proj.weight", "shared_mlp.output_linear.weight"),
    rename("mlp.router.weight", "block_sparse_moe.router.layer.weight"),
)

"""Granite mixtures of experts: Granite with experts in every layer, some also a shared expert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from wherry.ops import RouteSpec

from ..arch import Architecture, concat, rename, stack
from ..blocks.experts import DOWN, EXPERT, GATE_UP, CausalLM, Experts
from ..config import Count, Range
from ..decoder import WEIGHTS
from . import granite


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteMoeConfig(granite.GraniteConfig):
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
ARCH = Architecture(
    name="granitemoe",
    config=GraniteMoeConfig,
    model=CausalLM,
    weights=EXPERTS,
    aliases=("granitemoeshared",),
)

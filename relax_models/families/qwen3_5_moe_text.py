"""Qwen3.5 mixtures of experts, text: Qwen3.5 with experts and a gated shared expert in all layers.

Source: transformers' `modeling_qwen3_5_moe.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import RouteSpec

from ..arch import Architecture, rename
from ..config import Count, Size
from ..experts import DOWN, GATE_UP, Experts
from . import qwen3_5_text, qwen3_next


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3_5MoeConfig(qwen3_5_text.Qwen3_5Config):
    """Fields of Qwen3.5-MoE's config.json that shape the computation."""

    intermediate_size: Size = 512  # of no layer: all have experts
    moe_intermediate_size: Size = 512
    shared_expert_intermediate_size: Size = 512
    num_experts_per_tok: Count = 8
    num_experts: Count = 256

    def experts_of(self, layer: int) -> Experts:
        """Return the experts of a layer."""
        routing = RouteSpec(
            experts=self.num_experts, top_k=self.num_experts_per_tok, normalized=True
        )
        return Experts(
            routing=routing,
            size=self.moe_intermediate_size,
            shared=self.shared_expert_intermediate_size,
            shared_gate=True,
        )


ARCH = Architecture(
    name="qwen3_5_moe_text",
    config=Qwen3_5MoeConfig,
    model=qwen3_next.CausalLM,
    weights=(
        *qwen3_5_text.ARCH.weights,
        # Checkpoints have the matrices of all experts in one tensor, with the model's shape.
        rename(GATE_UP, GATE_UP.removesuffix(".weight")),
        rename(DOWN, DOWN.removesuffix(".weight")),
        rename("mlp.router.weight", "mlp.gate.weight"),
        qwen3_next.SHARED,
    ),
)

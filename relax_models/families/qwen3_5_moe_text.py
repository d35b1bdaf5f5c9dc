"""Qwen3.5 mixtures of experts, text: Qwen3.5 with experts, and a gated shared expert.

Source: transformers' `modeling_qwen3_5_moe.py`. Published checkpoints have one tensor for all
experts of a layer; transformers saves a text model with one tensor for each expert.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.ops import RouteSpec

from ..arch import Architecture, concat, drop, rename
from ..blocks.experts import EACH_OR_FUSED, Experts
from ..config import Count, Size
from ..decoder import WEIGHTS
from ..drafts import mtp
from ..lineages import qwen3_5
from ..lineages.qwen3_5 import GATED, Qwen3_5Config, lacks_block


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3_5MoeConfig(Qwen3_5Config):
    """Fields of Qwen3.5-MoE's config.json that shape the computation."""

    intermediate_size: Size = 1  # read by no layer: all have experts
    moe_intermediate_size: Size = 512
    shared_expert_intermediate_size: Size = 512
    num_experts_per_tok: Count = 8
    num_experts: Count = 256
    ALIASES: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **Qwen3_5Config.ACCEPTED,
        "decoder_sparse_step": (1,),
        "norm_topk_prob": (True,),
    }

    def problems(self) -> Iterator[str]:
        yield from Qwen3_5Config.problems(self)
        if self.num_experts_per_tok > self.num_experts:
            yield (
                f"num_experts_per_tok: {self.num_experts_per_tok} are more than the "
                f"{self.num_experts} of num_experts"
            )

    def experts_of(self, layer: int) -> Experts:
        """Return the experts of a layer: every layer has them."""
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
    model=qwen3_5.SparseLM,
    weights=(
        *GATED,
        *EACH_OR_FUSED,
        rename("mlp.router.weight", "mlp.gate.weight"),
        *WEIGHTS,
        concat("in_proj_ba.weight", "in_proj_b.weight", "in_proj_a.weight"),
        qwen3_5.SHARED,
        drop("mtp.*"),
    ),
    drafts=mtp.beside_layers(qwen3_5.SparseBlock, lacks_block),
)

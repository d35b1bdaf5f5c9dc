"""LFM2 mixtures of experts: LFM2 whose feed-forwards are experts, in all but the first layers.

Experts are chosen by the sigmoid of their logit plus a bias, which their weights do not contain.
Source: transformers' `modeling_lfm2_moe.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvm.relax.frontend import nn

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, rename, stack
from ..blocks.experts import Experts, SparseMLP
from ..config import Count, CountOrZero, Factor, Size
from ..decoder import WEIGHTS
from ..lineages import lfm2
from ..lineages.lfm2 import ConvConfig

ADDED = 1e-6  # to the sum by which the weights of a row's experts are divided


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm2MoeConfig(ConvConfig):
    """Fields of Lfm2Moe's config.json that shape the computation."""

    intermediate_size: Size = 7168  # of the first layers
    moe_intermediate_size: Size = 1792
    num_dense_layers: CountOrZero = 2
    num_experts: Count = 32
    num_experts_per_tok: Count = 4
    use_expert_bias: bool = True
    routed_scaling_factor: Factor = 1.0
    norm_topk_prob: bool = True

    def problems(self) -> Iterator[str]:
        if not self.layer_types:
            kinds = f"{lfm2.CONV} or {decoder.FULL}"
            yield f"layer_types: missing; it has the kind of each layer, {kinds}"
        yield from ConvConfig.problems(self)
        if self.num_experts_per_tok > self.num_experts:
            yield (
                f"num_experts_per_tok: {self.num_experts_per_tok} are more than the "
                f"{self.num_experts} of num_experts"
            )

    def experts_of(self, layer: int) -> Experts | None:
        """Return the experts of a layer; None: its feed-forward is dense."""
        if layer < self.num_dense_layers:
            return None
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            score="sigmoid",
            bias=self.use_expert_bias,
            normalized=self.norm_topk_prob,
            added=ADDED,
            scale=float(self.routed_scaling_factor),
        )
        return Experts(routing=routing, size=self.moe_intermediate_size)


class Block(lfm2.Block):
    def feed_forward_of(self, cfg: Lfm2MoeConfig, layer: int) -> nn.Module:
        spec = cfg.experts_of(layer)
        if spec is None:
            return lfm2.Block.feed_forward_of(self, cfg, layer)
        return SparseMLP(cfg.hidden_size, spec)


class Decoder(lfm2.Decoder):
    block = Block


class CausalLM(lfm2.CausalLM):
    decoder = Decoder


_EXPERTS = "feed_forward.experts"
ARCH = Architecture(
    name="lfm2_moe",
    config=Lfm2MoeConfig,
    model=CausalLM,
    weights=(
        stack(
            f"{_EXPERTS}.gate_up_proj.weight",
            f"{_EXPERTS}.{{}}.w1.weight",
            f"{_EXPERTS}.{{}}.w3.weight",
        ),
        stack(f"{_EXPERTS}.down_proj.weight", f"{_EXPERTS}.{{}}.w2.weight"),
        rename("feed_forward.router.weight", "feed_forward.gate.weight"),
        rename("feed_forward.e_score_correction_bias", "feed_forward.expert_bias"),
        *lfm2.DENSE,
        *WEIGHTS,
        *lfm2.ATTENTION,
    ),
)

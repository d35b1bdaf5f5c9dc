"""Cohere 2 mixtures of experts (Command A+, North): Cohere 2 whose feed-forwards are experts.

The first layers may have dense feed-forwards; these layers rotate although they have no window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..blocks import experts
from ..blocks.experts import STACKED, Experts
from ..config import Count, CountOrZero, Epsilon, Size
from ..decoder import PAIRED, WEIGHTS
from ..layer_kinds import DENSE, feed_forward_problems
from ..layers.dense import GatedMLP
from ..layers.norms import LayerNorm, RMSNorm
from ..lineages.cohere2 import Cohere2Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohere2MoeConfig(Cohere2Config):
    """Fields of Cohere2Moe's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        **Cohere2Config.ALIASES,
        "num_local_experts": "num_experts",
    }
    head_dim: Size | None = 128
    # None: LayerNorm. `norm` alone reads it, and is overridden, so a wider type is safe.
    rms_norm_eps: Epsilon | None = None  # type: ignore[assignment]
    num_experts_per_tok: Count = 2
    num_experts: Count = 8
    num_shared_experts: CountOrZero = 0
    shared_expert_combination_strategy: Literal["average", "sum"] = "average"
    expert_selection_fn: Literal["softmax", "sigmoid"] = "softmax"
    norm_topk_prob: bool = True  # whether weights by the sigmoid are divided by their sum
    mlp_layer_types: tuple[str, ...] = ()  # (): first_k_dense_replace decides
    first_k_dense_replace: CountOrZero = 0
    prefix_dense_intermediate_size: Size | None = None  # None: intermediate_size
    # of the dense layers, every Nth has no window
    prefix_dense_sliding_window_pattern: Count = 1

    def problems(self) -> Iterator[str]:
        yield from Cohere2Config.problems(self)
        yield from feed_forward_problems(self.mlp_layer_types, self.num_hidden_layers)
        if self.num_experts_per_tok > self.num_experts:
            yield f"num_experts_per_tok: {self.num_experts_per_tok} of {self.num_experts} experts"

    def dense(self, layer: int) -> bool:
        """Return whether `layer` has a dense feed-forward."""
        if self.mlp_layer_types:
            return self.mlp_layer_types[layer] == DENSE
        return layer < self.first_k_dense_replace

    def is_windowed(self, layer: int) -> bool:
        first = self.first_k_dense_replace
        if layer < first:
            return (layer + 1) % self.prefix_dense_sliding_window_pattern != 0
        return (layer - first + 1) % self.sliding_window_pattern != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        forced = self.dense(layer) and self.prefix_dense_sliding_window_pattern == 1
        return self.rope if forced or self.windowed(layer) else None

    def norm(self, size: int | None = None) -> nn.Module:
        width = size or self.hidden_size
        if self.rms_norm_eps is not None:
            return RMSNorm(width, self.rms_norm_eps)
        return LayerNorm(width, self.layer_norm_eps, bias=False)

    def experts_of(self, layer: int) -> Experts | None:
        if self.dense(layer):
            return None
        # The softmax over the chosen logits is the normalized one over all.
        soft = self.expert_selection_fn == "softmax"
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            score="softmax" if soft else "sigmoid",
            normalized=soft or self.norm_topk_prob,
        )
        size = self.intermediate_size
        return Experts(routing=routing, size=size, shared=size * self.num_shared_experts)


class AveragedMLP(experts.SparseMLP):
    """Sparse feed-forward whose result is the mean of the experts' and the shared expert's."""

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        return super().forward(x) * 0.5


class Block(decoder.ParallelBlock):
    def feed_forward(self, cfg: Cohere2MoeConfig, layer: int) -> nn.Module:
        spec = cfg.experts_of(layer)
        if spec is None:
            size = cfg.prefix_dense_intermediate_size or cfg.intermediate_size
            return GatedMLP(cfg.hidden_size, size)
        averaged = spec.shared and cfg.shared_expert_combination_strategy == "average"
        return (AveragedMLP if averaged else experts.SparseMLP)(cfg.hidden_size, spec)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="cohere2_moe",
    config=Cohere2MoeConfig,
    model=CausalLM,
    weights=(*STACKED, *WEIGHTS, *PAIRED),
)

"""HunYuan mixtures of experts: the dense model with experts, and a shared expert."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, rename
from ..blocks import qk_norm
from ..blocks.experts import EACH, Experts
from ..config import Count
from ..decoder import WEIGHTS
from ..lineages.hunyuan import HunYuanDenseV1Config


@dataclass(frozen=True, slots=True, kw_only=True)
class HunYuanMoEV1Config(HunYuanDenseV1Config):
    """Fields of HunYuanMoEV1's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_local_experts": "num_experts",
        "num_experts_per_tok": "moe_topk",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **HunYuanDenseV1Config.ACCEPTED,
        "num_shared_expert": (1,),
        "use_mixed_mlp_moe": (True,),
        "norm_topk_prob": (True,),
        "moe_layer_num_skipped": (0,),
        "group_limited_greedy": (False,),
        "routed_scaling_factor": (False, 1.0),
    }
    # Fields for training only: transformers drops no tokens at inference, either.
    IGNORED: ClassVar[tuple[str, ...]] = (
        *HunYuanDenseV1Config.IGNORED,
        "capacity_factor",
        "moe_drop_tokens",
        "moe_random_routing_dropped_token",
        "n_group",
        "topk_group",
    )
    num_experts: Count = 1
    # experts per row: one number for all layers, or one per layer
    moe_topk: Count | tuple[Count, ...] = 1
    # width of an expert; None: intermediate_size
    moe_intermediate_size: Count | tuple[int, ...] | None = None

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        sizes = self.moe_intermediate_size
        if sizes is not None and {self.intermediate_size} != set(_each(sizes)):
            yield f"moe_intermediate_size: found {sizes}, supported is intermediate_size"
        if isinstance(self.moe_topk, tuple) and len(self.moe_topk) != self.num_hidden_layers:
            yield f"moe_topk: {len(self.moe_topk)} for {self.num_hidden_layers} layers"
        if max(_each(self.moe_topk)) > self.num_experts:
            yield f"moe_topk: {max(_each(self.moe_topk))} of {self.num_experts} experts"

    def experts_of(self, layer: int) -> Experts:
        """Return a layer's experts, with the layer's own top-k."""
        chosen = self.moe_topk if isinstance(self.moe_topk, int) else self.moe_topk[layer]
        routing = RouteSpec(experts=self.num_experts, top_k=chosen, normalized=True)
        return Experts(routing=routing, size=self.intermediate_size, shared=self.intermediate_size)


def _each(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else value


ARCH = Architecture(
    name="hunyuan_v1_moe",
    config=HunYuanMoEV1Config,
    model=qk_norm.SparseLM,
    weights=(
        *EACH,
        *WEIGHTS,
        rename("mlp.router.weight", "mlp.gate.wg.weight"),
        rename("model.layers.*.mlp.shared_experts.*", "model.layers.*.mlp.shared_mlp.*"),
        rename("q_norm.weight", "query_layernorm.weight"),
        rename("k_norm.weight", "key_layernorm.weight"),
    ),
)

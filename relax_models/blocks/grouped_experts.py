"""Configuration of experts in groups, chosen by a sigmoid and a bias, as in DeepSeek V3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from wherry.ops import RouteSpec

from ..config import Count, CountOrZero, Factor, Size
from .experts import Experts


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class GroupedConfig:
    """Fields of families whose experts are in groups, chosen by a sigmoid and a bias."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_local_experts": "n_routed_experts",
        "num_experts": "n_routed_experts",
        "num_mtp_layers": "num_nextn_predict_layers",
    }
    moe_intermediate_size: Size = 1408
    num_experts_per_tok: Count = 8
    n_shared_experts: CountOrZero = 0
    n_routed_experts: Count = 128
    routed_scaling_factor: Factor = 1.0
    n_group: Count = 1
    topk_group: Count = 1
    first_k_dense_replace: CountOrZero = 0
    norm_topk_prob: bool = False
    num_nextn_predict_layers: CountOrZero = 0  # blocks of multi-token prediction

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and groups that the experts do not fill."""
        # defined by the class that this one is combined with
        yield from super().problems()  # type: ignore[misc]
        if self.n_routed_experts % self.n_group or self.topk_group > self.n_group:
            yield (
                f"n_group: {self.topk_group} (topk_group) of {self.n_group} groups of "
                f"{self.n_routed_experts} experts (n_routed_experts)"
            )
        elif self.num_experts_per_tok > self.topk_group * self.n_routed_experts // self.n_group:
            yield f"num_experts_per_tok: {self.num_experts_per_tok} are more than the groups have"

    def sparse(self, layer: int) -> bool:
        """Return whether `layer` has experts."""
        return layer >= self.first_k_dense_replace

    def experts_of(self, layer: int) -> Experts | None:
        """Return the experts of a layer; None: its feed-forward is dense."""
        if not self.sparse(layer):
            return None
        routing = RouteSpec(
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            score="sigmoid",
            bias=True,
            groups=self.n_group,
            kept_groups=self.topk_group,
            group_top=min(2, self.n_routed_experts // self.n_group),
            normalized=self.norm_topk_prob,
            scale=float(self.routed_scaling_factor),
        )
        size = self.moe_intermediate_size
        return Experts(routing=routing, size=size, shared=size * self.n_shared_experts)

"""EXAONE mixtures of experts (K-EXAONE): EXAONE 4's attention, and experts as in DeepSeek V3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture, drop, rename
from ..blocks import qk_norm
from ..blocks.experts import EACH
from ..blocks.grouped_experts import GroupedConfig
from ..config import Count, CountOrZero, Factor, Positions, Size
from ..decoder import WEIGHTS
from ..drafts import mtp
from ..layer_kinds import DENSE, SPARSE, feed_forward_problems
from ..lineages.exaone4 import Exaone4Config


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaoneMoeConfig(GroupedConfig, Exaone4Config):
    """Fields of ExaoneMoe's config.json that shape the computation."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        **GroupedConfig.ALIASES,
        "num_shared_experts": "n_shared_experts",
        "first_last_k_dense_replace": "first_k_dense_replace",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "scoring_func": ("sigmoid",),
        "topk_method": ("noaux_tc",),
    }
    max_position_embeddings: Positions = 2048
    moe_intermediate_size: Size = 1024
    n_shared_experts: CountOrZero = 1
    n_routed_experts: Count = 64
    routed_scaling_factor: Factor = 2.5
    first_k_dense_replace: CountOrZero = 1
    norm_topk_prob: bool = True
    mlp_layer_types: tuple[str, ...] = ()  # (): first_k_dense_replace decides

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Read the layers with experts from their other spelling, a list of booleans."""
        flags = given.get("is_moe_layer")
        if not isinstance(flags, list) or any(type(flag) is not bool for flag in flags):
            return given  # an unknown field, if it is there
        kinds = [SPARSE if flag else DENSE for flag in flags]
        if given.get("mlp_layer_types", kinds) != kinds:
            return given
        rest = {name: value for name, value in given.items() if name != "is_moe_layer"}
        return rest | {"mlp_layer_types": kinds}

    def problems(self) -> Iterator[str]:
        yield from GroupedConfig.problems(self)
        yield from feed_forward_problems(self.mlp_layer_types, self.num_hidden_layers)

    def sparse(self, layer: int) -> bool:
        if layer >= self.num_hidden_layers:
            return False  # the layer of a block of multi-token prediction
        if self.mlp_layer_types:
            return self.mlp_layer_types[layer] == SPARSE
        return layer >= self.first_k_dense_replace


ARCH = Architecture(
    name="exaone_moe",
    config=ExaoneMoeConfig,
    model=qk_norm.SparseLM,
    weights=(
        *EACH,
        rename("mlp.router.weight", "mlp.gate.weight"),
        *WEIGHTS,
        drop("mtp.*"),  # the layers of multi-token prediction
    ),
    drafts=mtp.beside_layers(qk_norm.SparseBlock, lambda _cfg: None),
)

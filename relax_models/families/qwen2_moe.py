"""Qwen2 mixtures of experts: Qwen2 with experts, and a gated shared expert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..arch import Architecture, rename
from ..blocks.experts import STACKED, CausalLM, Experts
from ..config import Count, Size
from ..decoder import WEIGHTS, Biases
from ..lineages.qwen import Qwen2Config, SparseConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen2MoeConfig(SparseConfig, Qwen2Config):
    """Fields of Qwen2Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 16}
    moe_intermediate_size: Size = 1408
    shared_expert_intermediate_size: Size = 5632
    num_experts_per_tok: Count = 4
    num_experts: Count = 60
    qkv_bias: bool = True

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Remove a sliding window of 0 tokens, which means no window."""
        if given.get("sliding_window") != 0:
            return given
        given = {name: value for name, value in given.items() if name != "sliding_window"}
        return given | {"use_sliding_window": False}

    def is_windowed(self, layer: int) -> bool:
        """Return whether `layer` has the window: every second layer below `max_window_layers`."""
        return layer % 2 == 0 and layer < self.max_window_layers

    def biases(self) -> Biases:
        return Biases(qkv=self.qkv_bias)

    def experts_of(self, layer: int) -> Experts | None:
        spec = SparseConfig.experts_of(self, layer)
        if spec is None:
            return None
        return replace(spec, shared=self.shared_expert_intermediate_size, shared_gate=True)


ARCH = Architecture(
    name="qwen2_moe",
    config=Qwen2MoeConfig,
    model=CausalLM,
    weights=(
        *STACKED,
        *WEIGHTS,
        rename("model.layers.*.mlp.shared_experts.*", "model.layers.*.mlp.shared_expert.*"),
    ),
)

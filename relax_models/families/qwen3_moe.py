"""Qwen3 mixtures of experts: Qwen3 with sparse feed-forwards in some or all layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture, unpack
from ..blocks import qk_norm
from ..blocks.experts import DOWN, EXPERT, GATE_UP, STACKED
from ..config import Size
from ..decoder import WEIGHTS
from ..lineages.qwen import Qwen3Config, SparseConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3MoeConfig(SparseConfig, Qwen3Config):
    """Fields of Qwen3Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    head_dim: Size | None = None

    def is_windowed(self, layer: int) -> bool:
        return True


# Qwen3-VL's checkpoints have one tensor for all experts of a layer, [e, in, out].
_EXPERTS = (
    unpack(
        GATE_UP,
        GATE_UP.removesuffix(".weight"),
        each=tuple(f"{EXPERT}.{name}_proj.weight" for name in ("gate", "up")),
    ),
    unpack(DOWN, DOWN.removesuffix(".weight"), each=(f"{EXPERT}.down_proj.weight",)),
)

ARCH = Architecture(
    name="qwen3_moe",
    config=Qwen3MoeConfig,
    model=qk_norm.SparseLM,
    weights=(*_EXPERTS, *STACKED, *WEIGHTS),
)

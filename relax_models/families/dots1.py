"""dots.llm1 mixtures of experts: Qwen3's attention, and experts chosen as in DeepSeek V3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture
from ..blocks import qk_norm
from ..blocks.experts import STACKED
from ..blocks.grouped_experts import GroupedConfig
from ..config import Positions, Range
from ..decoder import WEIGHTS, Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots1Config(GroupedConfig, decoder.WindowedConfig):
    """Fields of Dots1's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 32}
    sliding_window: Positions | None = 4096
    # the first layers, which have no sliding window
    max_window_layers: Annotated[int, Range(0, 2**12)] = 62
    attention_bias: bool = False

    def is_windowed(self, layer: int) -> bool:
        return layer >= self.max_window_layers

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)


ARCH = Architecture(
    name="dots1", config=Dots1Config, model=qk_norm.SparseLM, weights=(*STACKED, *WEIGHTS)
)

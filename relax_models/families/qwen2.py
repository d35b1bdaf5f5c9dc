"""Qwen2 and Qwen2.5 decoders: Llama with biases of q, k and v; sliding windows in upper layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Positions, Range
from ..decoder import WEIGHTS, Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen2Config(decoder.WindowedConfig):
    """Fields of Qwen2's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 32}
    max_position_embeddings: Positions = 32768
    sliding_window: Positions | None = 4096
    use_sliding_window: bool = False
    # the lowest layers, which have no sliding window
    max_window_layers: Annotated[int, Range(0, 2**12)] = 28

    @property
    def window(self) -> int | None:
        return self.sliding_window if self.use_sliding_window else None

    def is_windowed(self, layer: int) -> bool:
        return layer >= self.max_window_layers

    def biases(self) -> Biases:
        return Biases(qkv=True)


ARCH = Architecture(name="qwen2", config=Qwen2Config, model=CausalLM, weights=WEIGHTS)

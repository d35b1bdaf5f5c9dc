"""SmolLM3 decoders: Llama with layers that have no rotary embedding (NoPE)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..config import Positions, Range
from ..decoder import WEIGHTS, Biases, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class SmolLM3Config(decoder.WindowedConfig):
    """Fields of SmolLM3's config.json that shape the computation."""

    max_position_embeddings: Positions = 32768
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    mlp_bias: bool = False
    use_sliding_window: bool = False
    # per layer: 1 if it has RoPE, else 0
    no_rope_layers: tuple[Annotated[int, Range(0, 1)], ...] = ()
    no_rope_layer_interval: Annotated[int, Range(1, 2**12)] = 4  # every Nth layer has no RoPE
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4, "rope_theta": 2000000.0}

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        if self.no_rope_layers and len(self.no_rope_layers) < self.num_hidden_layers:
            yield (
                f"no_rope_layers: {len(self.no_rope_layers)} found for the "
                f"{self.num_hidden_layers} of num_hidden_layers"
            )

    @property
    def window(self) -> int | None:
        return self.sliding_window if self.use_sliding_window else None

    def is_windowed(self, layer: int) -> bool:
        return self.rope_of(layer) is None

    def rope_of(self, layer: int) -> RopeConfig | None:
        if self.no_rope_layers:
            return self.rope if self.no_rope_layers[layer] else None
        return self.rope if (layer + 1) % self.no_rope_layer_interval else None

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)


ARCH = Architecture(name="smollm3", config=SmolLM3Config, model=CausalLM, weights=WEIGHTS)

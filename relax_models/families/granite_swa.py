"""Granite decoders with sliding windows: attention sinks, and a RoPE base of its own per layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..blocks import attention_sinks
from ..config import Epsilon, Positions, Range
from ..decoder import WEIGHTS, Biases
from ..lineages.granite import ScaledConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GraniteSwaConfig(ScaledConfig, decoder.WindowedConfig):
    """Fields of GraniteSWA's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    max_position_embeddings: Positions = 8192
    rms_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    mlp_bias: bool = False
    sliding_window: Positions | None = 128
    # RoPE's base of each layer, 0 for a layer without RoPE; (): that of RoPE's fields in all
    layer_rope_theta: tuple[Annotated[float, Range(0.0, 1e15)], ...] = ()

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        given, count = self.layer_rope_theta, self.num_hidden_layers
        if given and len(given) != count:
            yield f"layer_rope_theta: {len(given)} found for num_hidden_layers, {count}"
        if any(0 < theta <= 1 for theta in given):
            yield f"layer_rope_theta: found {min(filter(None, given))}, supported are 0 and above 1"

    def is_windowed(self, layer: int) -> bool:
        return layer % 4 != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        if not self.layer_rope_theta:
            return self.rope
        theta = self.layer_rope_theta[layer]
        return replace(self.rope, theta=float(theta)) if theta else None

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)


class Block(decoder.Block):
    attention = attention_sinks.Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="granite_swa", config=GraniteSwaConfig, model=CausalLM, weights=WEIGHTS)

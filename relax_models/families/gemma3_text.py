"""Gemma 3 decoders, text: Gemma 2 with norms of q and k, and separate RoPE in windowed layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..config import Positions, Range
from ..decoder import FULL, WEIGHTS, WINDOWED
from . import gemma2
from .gemma2 import Cap


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma3Config(gemma2.Gemma2Config):
    """Fields of Gemma3's config.json that shape the computation."""

    max_position_embeddings: Positions = 131072
    final_logit_softcapping: Cap | None = None
    attn_logit_softcapping: Cap | None = None
    sliding_window_pattern: Annotated[int, Range(1, 2**12)] = 6  # every Nth layer has no window
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    # Gemma 3 4B's values; config.json contains only the text model's differences from these.
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "rope_theta": 1000000.0,
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("_sliding_window_pattern", "cache_implementation")

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer.

        Checkpoints have one object for both, or separate fields.
        """
        given = dict(given)
        local = {"rope_type": "default", "rope_theta": given.pop("rope_local_base_freq", 10000.0)}
        both = given.get("rope_parameters")
        if isinstance(both, dict) and set(both) <= {WINDOWED, FULL}:
            local = {**local, **(both.get(WINDOWED) or {})}
            given["rope_parameters"] = both.get(FULL)
        return given | {"local_rope_parameters": local}

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = gemma2.Gemma2Config.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)


class Block(gemma2.Block):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="gemma3_text", config=Gemma3Config, model=CausalLM, weights=WEIGHTS)

"""OLMo 3 decoders: OLMo 2 with sliding windows in three layers of four, with unscaled RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..config import Epsilon, Positions
from ..decoder import FULL, WEIGHTS, WINDOWED, Biases
from ..lineages import olmo2


@dataclass(frozen=True, slots=True, kw_only=True)
class Olmo3Config(decoder.WindowedConfig):
    """Fields of Olmo3's config.json that shape the computation."""

    rms_norm_eps: Epsilon = 1e-5
    sliding_window: Positions | None = 4096
    attention_bias: bool = False
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"rope_theta": 500000.0}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer; older checkpoints have one object for both kinds."""
        local = {"rope_type": "default", "rope_theta": given.get("rope_theta", 500000.0)}
        both = given.get("rope_parameters")
        if isinstance(both, dict) and set(both) <= {WINDOWED, FULL}:
            local = {**local, **(both.get(WINDOWED) or {})}
            given = given | {"rope_parameters": both.get(FULL)}
        return given | {"local_rope_parameters": local}

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % 4 != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)


ARCH = Architecture(name="olmo3", config=Olmo3Config, model=olmo2.CausalLM, weights=WEIGHTS)

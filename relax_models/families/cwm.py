"""CWM decoders: Llama with sliding windows in three layers of four."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon, Positions, Size
from ..decoder import WEIGHTS, CausalLM

_LLAMA3: Mapping[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CwmConfig(decoder.WindowedConfig):
    """Fields of Cwm's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    sliding_window: Positions | None = 8192
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_parameters": _LLAMA3}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mlp_bias": (False,),
    }

    def is_windowed(self, layer: int) -> bool:
        return layer % 4 != 0


ARCH = Architecture(name="cwm", config=CwmConfig, model=CausalLM, weights=WEIGHTS)

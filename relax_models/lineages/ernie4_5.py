"""ERNIE 4.5's configuration, dense and with experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..config import Epsilon, Positions, Size
from ..decoder import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Ernie4_5Config(decoder.DecoderConfig):
    """Fields of Ernie4.5's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    use_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2, "rope_theta": 500000.0}

    def biases(self) -> Biases:
        return Biases(self.use_bias, self.use_bias, self.use_bias)

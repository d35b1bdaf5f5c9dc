"""Mistral decoders: Llama, in some versions with a sliding window in every layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture
from ..config import Positions
from ..decoder import WEIGHTS, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class MistralConfig(decoder.WindowedConfig):
    """Fields of Mistral's config.json; Ministral also gives `layer_types`."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    max_position_embeddings: Positions = 131072
    sliding_window: Positions | None = 4096


ARCH = Architecture(
    name="mistral",
    config=MistralConfig,
    model=CausalLM,
    weights=WEIGHTS,
    aliases=("ministral",),
)

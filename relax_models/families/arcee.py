"""Arcee decoders (AFM): Llama with squared ReLU instead of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture
from ..blocks import squared_relu
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ArceeConfig(LlamaConfig):
    """Fields of Arcee's config.json that shape the computation."""

    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("relu2",)}


ARCH = Architecture(name="arcee", config=ArceeConfig, model=squared_relu.CausalLM, weights=WEIGHTS)

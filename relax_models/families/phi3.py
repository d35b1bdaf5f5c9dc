"""Phi-3 and Phi-4 decoders: Llama stored with fused linears, partial and scaled RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture, tie
from ..config import Epsilon, Positions
from ..decoder import CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Phi3Config(decoder.WindowedConfig):
    """Fields of Phi-3's config.json that shape the computation.

    With LongRoPE the context is that of the short factors, unless the model is compiled for a
    longer one.
    """

    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096,
    }
    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename LongRoPE, which older checkpoints call otherwise."""
        for name in ("rope_scaling", "rope_parameters"):
            rope = given.get(name)
            if isinstance(rope, dict):
                kinds = {k: "longrope" for k in ("type", "rope_type") if rope.get(k) in _LONGROPE}
                given = {**given, name: {**rope, **kinds}}
        return given


_LONGROPE = ("su", "yarn", "longrope")
WEIGHTS = (tie("lm_head.weight", "model.embed_tokens.weight"),)
ARCH = Architecture(name="phi3", config=Phi3Config, model=CausalLM, weights=WEIGHTS)

"""IQuest-Coder decoders: the same architecture as Llama."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..arch import Architecture
from ..config import Epsilon, Positions, Size
from ..decoder import WEIGHTS, CausalLM
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class IQuestCoderConfig(LlamaConfig):
    """Fields of IQuestCoder's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "use_sliding_window": (False,),
        "clip_qkv": (),
    }


ARCH = Architecture(name="iquestcoder", config=IQuestCoderConfig, model=CausalLM, weights=WEIGHTS)

"""Arcee decoders (AFM): Llama with squared ReLU instead of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS
from ..layers.dense import MLP
from . import llama


@dataclass(frozen=True, slots=True, kw_only=True)
class ArceeConfig(llama.LlamaConfig):
    """Fields of Arcee's config.json that shape the computation."""

    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("relu2",)}


class Block(decoder.Block):
    def feed_forward(self, cfg: ArceeConfig, layer: int) -> nn.Module:
        return MLP(cfg.hidden_size, cfg.intermediate_size, "relu2", cfg.mlp_bias)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="arcee", config=ArceeConfig, model=CausalLM, weights=WEIGHTS)

"""Jais 2 decoders: Llama with LayerNorm, biases, and squared ReLU instead of a gate."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.relax.frontend import nn

from ..arch import Architecture
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS
from ..layers.norms import LayerNorm
from . import arcee


@dataclass(frozen=True, slots=True, kw_only=True)
class Jais2Config(arcee.ArceeConfig):
    """Fields of Jais2's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    layer_norm_eps: Epsilon = 1e-5
    attention_bias: bool = True
    mlp_bias: bool = True

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.layer_norm_eps)


ARCH = Architecture(name="jais2", config=Jais2Config, model=arcee.CausalLM, weights=WEIGHTS)

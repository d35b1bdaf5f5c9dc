"""Jais 2 decoders: Llama with LayerNorm, biases, and squared ReLU instead of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from ..arch import Architecture
from ..blocks import squared_relu
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS
from ..layers.norms import LayerNorm
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Jais2Config(LlamaConfig):
    """Fields of Jais2's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    rms_norm_eps: Epsilon = 1e-5
    layer_norm_eps: Epsilon = 1e-5
    attention_bias: bool = True
    mlp_bias: bool = True
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("relu2",)}

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.layer_norm_eps)


ARCH = Architecture(name="jais2", config=Jais2Config, model=squared_relu.CausalLM, weights=WEIGHTS)

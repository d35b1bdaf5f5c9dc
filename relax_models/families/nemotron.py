"""Nemotron decoders (Minitron): LayerNorm by 1 + weight, squared ReLU, partial RoPE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture
from ..blocks import squared_relu
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS, Biases
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class NemotronConfig(decoder.DecoderConfig):
    """Fields of Nemotron's config.json that shape the computation."""

    max_position_embeddings: Positions = 4096
    norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    mlp_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partial_rotary_factor": 0.5}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("relu2",)}

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.norm_eps, offset=1.0)


ARCH = Architecture(
    name="nemotron", config=NemotronConfig, model=squared_relu.CausalLM, weights=WEIGHTS
)

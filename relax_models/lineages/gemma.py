"""Gemma 2's configuration, and Gemma's blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn

from wherry.ops import AttentionShape

from .. import decoder
from ..config import Cap, Positions, Range, Size
from ..decoder import Biases, ModelScales
from ..layers.dense import GatedMLP
from ..layers.norms import RMSNorm


class Block(decoder.Block):
    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        return GatedMLP(cfg.hidden_size, cfg.intermediate_size, "gelu_tanh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemma2Config(decoder.WindowedConfig):
    """Fields of Gemma2's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    head_dim: Size | None = 256
    max_position_embeddings: Positions = 8192
    tie_word_embeddings: bool = True
    sliding_window: Positions | None = 4096
    attention_bias: bool = False
    query_pre_attn_scalar: Annotated[float, Range(1e-3, 1e6)] = 256
    final_logit_softcapping: Cap | None = 30.0
    attn_logit_softcapping: Cap | None = 50.0
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu_pytorch_tanh",),
        "hidden_activation": ("gelu_pytorch_tanh",),
        "use_bidirectional_attention": (False,),
    }

    def is_windowed(self, layer: int) -> bool:
        return layer % 2 == 0

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        scale = self.query_pre_attn_scalar**-0.5
        return replace(shape, scale=scale, softcap=self.attn_logit_softcapping)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(embedding=sqrt(self.hidden_size), logit_cap=self.final_logit_softcapping)

    def norm(self, size: int | None = None) -> nn.Module:
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps, offset=1.0)


class SandwichBlock(decoder.SandwichBlock):
    def feed_forward(self, cfg: Gemma2Config, layer: int) -> nn.Module:
        return GatedMLP(cfg.hidden_size, cfg.intermediate_size, "gelu_tanh")

"""Qwen3 dense decoders: Llama with an RMSNorm over each query and key head."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture
from ..config import Positions, Size
from ..decoder import WEIGHTS, Biases
from . import qwen2


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3Config(qwen2.Qwen2Config):
    """Fields of Qwen3's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 32768
    attention_bias: bool = False

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)


class Block(decoder.Block):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="qwen3", config=Qwen3Config, model=CausalLM, weights=WEIGHTS)

"""OLMo decoders: Llama with LayerNorm that has no weights; some sizes clip q, k and v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture, constant
from ..config import Range
from ..decoder import WEIGHTS, Biases
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class OlmoConfig(decoder.DecoderConfig):
    """Fields of Olmo's config.json that shape the computation."""

    attention_bias: bool = False
    clip_qkv: Annotated[float, Range(1e-3, 1e6)] | None = None

    def clip(self) -> float | None:
        return self.clip_qkv

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, 1e-5, bias=False)


class Block(decoder.Block):
    attention = decoder.ClippedAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ONES = tuple(
    constant(f"{name}.weight", 1.0)
    for name in ("input_layernorm", "post_attention_layernorm", "model.norm")
)
ARCH = Architecture(name="olmo", config=OlmoConfig, model=CausalLM, weights=(*ONES, *WEIGHTS))

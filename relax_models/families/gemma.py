"""Gemma decoders: scaled embeddings, norms that add one to their weights, GELU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture
from ..config import Positions, Size
from ..decoder import WEIGHTS, Biases, ModelScales
from ..layers.norms import RMSNorm
from ..lineages import gemma


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmaConfig(decoder.DecoderConfig):
    """Fields of Gemma's config.json; its "gelu" means the tanh approximation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 16}
    head_dim: Size | None = 256
    max_position_embeddings: Positions = 8192
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu_pytorch_tanh", "gelu"),
        "hidden_activation": ("gelu_pytorch_tanh",),
        "use_bidirectional_attention": (False,),
    }

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(embedding=sqrt(self.hidden_size))

    def norm(self, size: int | None = None) -> nn.Module:
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps, offset=1.0)


class Decoder(decoder.Decoder):
    block = gemma.Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="gemma", config=GemmaConfig, model=CausalLM, weights=WEIGHTS)

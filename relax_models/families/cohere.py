"""Cohere decoders (Command R, Aya): LayerNorm, attention beside feed-forward, scaled logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon, Positions, Range
from ..decoder import PAIRED, WEIGHTS, Biases, Scales
from ..norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class CohereConfig(decoder.DecoderConfig):
    """Fields of config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    layer_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    logit_scale: Annotated[float, Range(1e-6, 1e6)] = 0.0625
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"rope_theta": 500000.0}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "use_qk_norm": (False,),
    }

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> Scales:
        return Scales(logits=float(self.logit_scale))

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.layer_norm_eps, bias=False)


class Decoder(decoder.Decoder):
    block = decoder.ParallelBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="cohere", config=CohereConfig, model=CausalLM, weights=(*WEIGHTS, *PAIRED))

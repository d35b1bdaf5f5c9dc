"""OLMo 2 decoders: norms after attention and feed-forward, and norms over all of q and of k."""

from __future__ import annotations

from dataclasses import dataclass

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon
from ..decoder import WEIGHTS, Biases
from ..lineages import olmo2


@dataclass(frozen=True, slots=True, kw_only=True)
class Olmo2Config(decoder.DecoderConfig):
    """Fields of Olmo2's config.json that shape the computation."""

    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)


ARCH = Architecture(name="olmo2", config=Olmo2Config, model=olmo2.CausalLM, weights=WEIGHTS)

"""Ministral 3 decoders: Mistral with YaRN; queries are scaled by the logarithm of the position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from .. import decoder
from ..arch import Architecture
from ..blocks.temperature import TemperedConfig, tempered
from ..config import Epsilon, Positions, Size
from ..decoder import WEIGHTS
from ..step import Batch, attention

_YARN: Mapping[str, Any] = {
    "type": "yarn",
    "rope_theta": 1000000.0,
    "factor": 16.0,
    "original_max_position_embeddings": 16384,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale_all_dim": 1.0,
    "mscale": 1.0,
    "llama_4_scaling_beta": 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ministral3Config(TemperedConfig, decoder.WindowedConfig):
    """Fields of Ministral3's config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 262144
    rms_norm_eps: Epsilon = 1e-5
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_parameters": _YARN}


class Attention(decoder.Attention):
    def __init__(self, cfg: Ministral3Config, layer: int) -> None:
        super().__init__(cfg, layer)
        self.temperature = cfg.temperature

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = self.qkv_proj(x)
        if self.temperature is not None:
            width = self.shape.heads * self.shape.head_dim
            qkv = tempered(qkv, batch.positions, width, self.temperature)
        return self.o_proj(attention(qkv, batch, self.shape))


class Block(decoder.Block):
    attention = Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="ministral3", config=Ministral3Config, model=CausalLM, weights=WEIGHTS)

"""BitNet b1.58: Llama with norms before the output projections, and squared ReLUs with a gate.

Weights are -1, 0 or 1 times a scale (`compiler/checkpoint/quantized/bitnet.py`), and linears round
their inputs to 8 bits a row (`bit_linear.py`), where config.json has the `quantization_config`.
Source: transformers' `modeling_bitnet.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from .. import decoder
from ..arch import Architecture
from ..config import Epsilon
from ..decoder import WEIGHTS, Biases
from ..layers.activations import activate
from ..layers.dense import GatedMLP
from ..step import Batch, attention


@dataclass(frozen=True, slots=True, kw_only=True)
class BitNetConfig(decoder.DecoderConfig):
    """Fields of BitNet's config.json that shape the computation."""

    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 5, "rope_theta": 500000.0}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("relu2",)}

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias)


class Attention(decoder.Attention):
    """Attention with a norm over all heads' results."""

    def __init__(self, cfg: BitNetConfig, layer: int) -> None:
        super().__init__(cfg, layer)
        self.attn_sub_norm = cfg.norm(self.shape.heads * self.shape.head_dim)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        return self.o_proj(self.attn_sub_norm(attention(self.qkv_proj(x), batch, self.shape)))


class MLP(GatedMLP):
    """Gated feed-forward with a norm before its last linear."""

    def __init__(self, cfg: BitNetConfig) -> None:
        super().__init__(cfg.hidden_size, cfg.intermediate_size, "relu2")
        self.ffn_sub_norm = cfg.norm(cfg.intermediate_size)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        both = activate(self.gate_up_proj(x), self.activation, gated=True)
        return self.down_proj(self.ffn_sub_norm(both))


class Block(decoder.Block):
    attention = Attention

    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        return MLP(cfg)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="bitnet", config=BitNetConfig, model=CausalLM, weights=WEIGHTS)

"""LFM2's decoder: gated short convolutions, and attention in some layers.

Source: transformers' `modeling_lfm2.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder, layer_kinds
from ..arch import concat, rename
from ..blocks.recurrent import ShortConv
from ..config import Count, Epsilon, Positions
from ..decoder import FULL
from ..layers import dense
from ..step import Batch

CONV = "conv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvConfig(decoder.DecoderConfig):
    """Configuration fields that all families with short convolutions share."""

    max_position_embeddings: Positions = 128000
    rms_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    conv_bias: bool = False
    conv_L_cache: Count = 3
    layer_types: tuple[str, ...] = ()  # kind of each layer; (): `default_kind` decides
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_theta": 1000000.0}
    SPELLED: ClassVar[Mapping[str, str]] = {"rms_norm_eps": "norm_eps"}
    ALIASES: ClassVar[Mapping[str, str]] = {"tie_embedding": "tie_word_embeddings"}
    KINDS: ClassVar[tuple[str, ...]] = (FULL, CONV)

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        count = self.num_hidden_layers
        kind_problems = list(layer_kinds.problems(self.layer_types, self.KINDS, count))
        yield from kind_problems
        if not kind_problems and not any(map(self.attends, range(count))):
            yield f"layer_types: no layer of the {self.num_hidden_layers} has attention"
        if self.conv_L_cache < 2:
            yield f"conv_L_cache: {self.conv_L_cache} found, minimum is 2"

    def default_kind(self, layer: int) -> str:
        """Return the kind of `layer`, if config.json has no `layer_types`."""
        return FULL

    def kind(self, layer: int) -> str:
        """Return the kind of `layer`."""
        return self.layer_types[layer] if self.layer_types else self.default_kind(layer)

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others have a convolution."""
        return self.kind(layer) != CONV

    @property
    def feed_forward_size(self) -> int:
        """Return the width of the dense feed-forwards."""
        return self.intermediate_size

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)


class GatedConv(nn.Module):
    """Short convolution with gates before and after it: out(c * conv(b * x))."""

    def __init__(self, cfg: Any) -> None:
        d, bias = cfg.hidden_size, cfg.conv_bias
        self.in_proj = nn.Linear(d, 3 * d, bias=bias)
        self.conv = ShortConv(d, cfg.conv_L_cache, activation="none", bias=bias)
        self.out_proj = nn.Linear(d, d, bias=bias)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        b, c, x = op.split(self.in_proj(x), 3, axis=-1)
        return self.out_proj(c * self.conv(b * x, batch))


class Block(nn.Module):
    """Pre-norm block with attention or a short convolution."""

    attention: type[nn.Module] = decoder.HeadNormAttention

    def __init__(self, cfg: Any, layer: int) -> None:
        self.attends = cfg.attends(layer)
        if self.attends:
            self.self_attn = self.attention(cfg, layer)
        else:
            self.conv = GatedConv(cfg)
        self.operator_norm = cfg.norm()
        self.ffn_norm = cfg.norm()
        self.feed_forward = self.feed_forward_of(cfg, layer)

    def feed_forward_of(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer."""
        return dense.GatedMLP(cfg.hidden_size, cfg.feed_forward_size)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        mixer = self.self_attn if self.attends else self.conv
        x = x + mixer(self.operator_norm(x), batch)
        return x + self.feed_forward(self.ffn_norm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


# Weight rules of dense feed-forwards, and of the last norm.
DENSE = (
    concat("feed_forward.gate_up_proj.weight", "feed_forward.w1.weight", "feed_forward.w3.weight"),
    rename("feed_forward.down_proj.weight", "feed_forward.w2.weight"),
    rename("model.norm.weight", "model.embedding_norm.weight"),
)

# Weight rules of attention with LFM2's names.
ATTENTION = (
    rename("self_attn.o_proj.weight", "self_attn.out_proj.weight"),
    rename("self_attn.q_norm.weight", "self_attn.q_layernorm.weight"),
    rename("self_attn.k_norm.weight", "self_attn.k_layernorm.weight"),
)

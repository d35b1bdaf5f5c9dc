"""Base classes of decoders descended from GPT-2: LayerNorm, biases, a feed-forward without a gate.

A family's file says how config.json spells its fields (`SPELLED`), and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn

from . import decoder
from .arch import Groups, RopeConfig
from .blocks import positions
from .config import Epsilon, Range
from .decoder import Biases
from .layers.activations import NAMES, Name
from .layers.dense import MLP
from .layers.norms import LayerNorm

# Field -> its name in GPT-2's config.json.
SPELLED = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
    "norm_eps": "layer_norm_epsilon",
    "hidden_act": "activation_function",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicConfig(decoder.DecoderConfig):
    """Configuration fields that all GPT-2 descendants share."""

    # width of the feed-forward; 0: 4 * hidden_size
    intermediate_size: Annotated[int, Range(0, 2**20)] = 0
    norm_eps: Epsilon = 1e-5
    hidden_act: Name = "gelu_new"
    ROTATES: ClassVar[bool] = True
    HEAD_BIAS: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = {"norm_eps": "layer_norm_eps"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    IGNORED: ClassVar[tuple[str, ...]] = ("attn_pdrop", "classifier_dropout")

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, RoPE where nothing rotates, a tied biased head."""
        yield from decoder.DecoderConfig.problems(self)
        if not self.ROTATES and self.rope != RopeConfig():
            yield f"rope_parameters: found {self.rope}, but nothing rotates in this family"
        if self.HEAD_BIAS and self.tie_word_embeddings:
            yield "tie_word_embeddings: found True, supported is False: the head has a bias"

    def rope_of(self, layer: int) -> RopeConfig | None:
        """Return RoPE of a layer; None in families with learned positions or ALiBi."""
        return self.rope if self.ROTATES else None

    @property
    def inner(self) -> int:
        """Return the width of the feed-forward."""
        return self.intermediate_size or 4 * self.hidden_size

    def biases(self) -> Biases:
        """Return which linears have a bias: all of them."""
        return Biases(qkv=True, out=True, mlp=True)

    def norm(self, size: int | None = None) -> nn.Module:
        """Return a LayerNorm with a bias, over `size` elements or the hidden size."""
        return LayerNorm(size or self.hidden_size, self.norm_eps)


def feed_forward(_block: Any, cfg: Any, layer: int) -> nn.Module:
    """Return a layer's feed-forward, which has no gate."""
    return MLP(cfg.hidden_size, cfg.inner, NAMES[cfg.hidden_act], cfg.biases().mlp)


def by_head(cfg: Any) -> Groups:
    """Return the row order of a qkv tensor that has a head's q, k and v, then the next head's."""
    return Groups(cfg.num_attention_heads, cfg.kv_heads, cfg.head_size)


class Block(decoder.Block):
    feed_forward = feed_forward


class ParallelBlock(decoder.ParallelBlock):
    feed_forward = feed_forward


class TwinNormBlock(decoder.TwinNormBlock):
    feed_forward = feed_forward


class Decoder(decoder.Decoder):
    block = Block


class ParallelDecoder(decoder.Decoder):
    block = ParallelBlock


class ClassicDecoder(positions.PositionedDecoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


class PositionedLM(decoder.CausalLM):
    decoder = ClassicDecoder


class BiasedLM(decoder.CausalLM):
    """Language model whose LM head has a bias."""

    decoder = ParallelDecoder
    head_bias = True

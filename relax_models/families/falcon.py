"""Falcon decoders (7B, 40B, 180B, RW): shared keys, parallel attention and feed-forward, ALiBi."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import AttentionShape

from .. import classic, decoder
from ..arch import Architecture, RopeConfig
from ..blocks.positions import alibi
from ..config import Range
from ..decoder import Biases
from ..layers.activations import Name
from ..lineages import falcon
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class FalconConfig(classic.ClassicConfig):
    """Fields of Falcon's config.json that shape the computation.

    ALiBi's biases are exact here; transformers rounds them to bfloat16.
    """

    hidden_act: Name = "gelu"
    tie_word_embeddings: bool = True
    alibi: bool = False
    bias: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    new_decoder_architecture: bool = False
    num_ln_in_parallel_attn: Annotated[int, Range(1, 2)] | None = None
    SPELLED: ClassVar[Mapping[str, str]] = {
        "norm_eps": "layer_norm_epsilon",
        "hidden_act": "activation",
        "intermediate_size": "ffn_hidden_size",
        "num_key_value_heads": "num_kv_heads",
    }

    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "apply_residual_connection_post_layernorm": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("ff_factor",)  # ffn_hidden_size has the width already

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename fields that older checkpoints spell differently."""
        older = {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
        older |= {"n_head_kv": "num_kv_heads", "n_embed": "hidden_size"}
        return {older.get(name, name): value for name, value in given.items()}

    def problems(self) -> Iterator[str]:
        yield from classic.ClassicConfig.problems(self)
        if self.alibi and self.rope != RopeConfig():
            yield f"rope_parameters: found {self.rope}, but alibi is true"
        if not self.new_decoder_architecture and self.num_ln_in_parallel_attn == 2:
            yield "num_ln_in_parallel_attn: found 2 without new_decoder_architecture"
        if self.new_decoder_architecture and not self.parallel_attn:
            yield "parallel_attn: found False, supported with new_decoder_architecture is True"

    @property
    def kv_heads(self) -> int:
        if self.new_decoder_architecture:
            return self.num_key_value_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    def rope_of(self, layer: int) -> RopeConfig | None:
        return None if self.alibi else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        """Return the attention shape; Falcon scales ALiBi's biases together with the scores."""
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        slopes = alibi(self.num_attention_heads) if self.alibi else ()
        return replace(shape, slopes=tuple(slope * shape.scale for slope in slopes))

    def biases(self) -> Biases:
        return Biases(self.bias, self.bias, self.bias)


class TwinNormBlock(classic.TwinNormBlock):
    """Parallel block with two norms, under Falcon's names."""

    def __init__(self, cfg: FalconConfig, layer: int) -> None:
        super().__init__(cfg, layer)
        self.ln_attn, self.ln_mlp = self.input_layernorm, self.post_attention_layernorm
        del self.input_layernorm, self.post_attention_layernorm

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        y = self.self_attn(self.ln_attn(x), batch)
        return self.added(self.added(x, y), self.mlp(self.ln_mlp(x)))


class Decoder(decoder.Decoder):
    def block_of(self, cfg: FalconConfig) -> type[nn.Module]:
        """Return the block class by the number and position of its norms."""
        if not cfg.parallel_attn:
            return classic.Block
        norms = cfg.num_ln_in_parallel_attn or (2 if cfg.new_decoder_architecture else 1)
        return TwinNormBlock if norms == 2 else classic.ParallelBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="falcon",
    config=FalconConfig,
    model=CausalLM,
    weights=falcon.WEIGHTS,
    base="transformer",
)

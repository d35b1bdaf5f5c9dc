"""MPT decoders: ALiBi instead of positions, no biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from wherry.ops import AttentionShape

from .. import classic, decoder
from ..arch import Architecture, rename
from ..blocks.positions import alibi
from ..config import NO_EFFECT, Factor, Positions
from ..decoder import TIED, Biases
from ..layers.activations import Name
from ..layers.norms import LayerNorm

# Fields of `attn_config` that are not read -> values that are accepted.
_GIVEN: Mapping[str, Any] = {
    "attn_type": "multihead_attention",
    "alibi": True,
    "prefix_lm": False,
    "qk_ln": False,
    "attn_uses_sequence_id": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MptConfig(classic.ClassicConfig):
    """Fields of MPT's config.json; those of its `attn_config` have the prefix `attn_`.

    transformers uses 8 for `alibi_bias_max`, whatever its value.
    """

    max_position_embeddings: Positions = 2048
    hidden_act: Name = "gelu"
    tie_word_embeddings: bool = True
    attn_alibi_bias_max: Factor = 8
    attn_clip_qkv: Factor | None = None
    attn_softmax_scale: Factor | None = None
    ROTATES: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "max_position_embeddings": "max_seq_len",
        "norm_eps": "layer_norm_epsilon",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "expansion_ratio": (4,),
        "no_bias": (True,),
        "embedding_fraction": (1.0,),
        "norm_type": ("low_precision_layernorm", "layernorm"),
        "logit_scale": (),
        **{f"attn_{name}": (value,) for name, value in _GIVEN.items()},
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "init_device",
        "init_config",
        "emb_pdrop",
        "learned_pos_emb",  # models with ALiBi have no learned positions
        "verbose",
        "tokenizer_name",
        "attn_attn_impl",
        "attn_attn_pdrop",
        "attn_is_encoder_decoder",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Move the fields of `attn_config` to the top level."""
        given = dict(given)
        inner = given.pop("attn_config", {})
        if not isinstance(inner, dict):
            return given | {"attn_config": inner}
        kept = {n: value for n, value in inner.items() if value is not None and n not in NO_EFFECT}
        return given | {f"attn_{name}": value for name, value in kept.items()}

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        slopes = alibi(self.num_attention_heads, float(self.attn_alibi_bias_max))
        return replace(shape, scale=self.attn_softmax_scale or shape.scale, slopes=slopes)

    def clip(self) -> float | None:
        return self.attn_clip_qkv

    def biases(self) -> Biases:
        return Biases()

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.norm_eps, bias=False)


class Block(classic.Block):
    attention = decoder.ClippedAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


NAMES: Mapping[str, str] = {
    "self_attn.qkv_proj": "attn.Wqkv",
    "self_attn.o_proj": "attn.out_proj",
    "mlp.up_proj": "ffn.up_proj",
    "mlp.down_proj": "ffn.down_proj",
    "input_layernorm": "norm_1",
    "post_attention_layernorm": "norm_2",
    "model.norm": "transformer.norm_f",
    "model.embed_tokens": "transformer.wte",
}
ARCH = Architecture(
    name="mpt",
    config=MptConfig,
    model=CausalLM,
    weights=(
        TIED,
        *(rename(f"{param}.weight", f"{source}.weight") for param, source in NAMES.items()),
        rename("model.layers.*", "transformer.blocks.*"),
    ),
    base="transformer",
)

"""Nomic's BERT encoders (nomic-embed-text): RoPE, SwiGLU, norms after additions, no biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import encoder, rotary_encoder
from ..arch import Architecture, concat, drop, rename
from ..config import Positions, Size
from ..encoder import EncoderConfig, dropped, named
from ..layers.dense import GatedMLP
from ..rotary_encoder import RotaryConfig, SegmentCount


@dataclass(frozen=True, slots=True, kw_only=True)
class NomicBertConfig(RotaryConfig):
    """Fields of NomicBert's config.json that shape the computation."""

    max_position_embeddings: Positions = 2048
    type_vocab_size: SegmentCount = 2
    head_dim: Size | None = None  # None: hidden_size / num_attention_heads
    # Fields of the first version, whose code came with the weights.
    ALIASES: ClassVar[Mapping[str, str]] = {
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "n_layer": "num_hidden_layers",
        "n_positions": "max_position_embeddings",
        "layer_norm_epsilon": "layer_norm_eps",
        "rotary_emb_base": "rope_theta",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "activation_function": ("swiglu",),
        "causal": (False,),
        "mlp_fc1_bias": (False,),
        "mlp_fc2_bias": (False,),
        "qkv_proj_bias": (False,),
        "parallel_block": (False,),
        "prenorm": (False,),
        "rotary_emb_fraction": (1, 1.0),
        "rotary_emb_interleaved": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "use_rms_norm": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "attn_pdrop",
        "dense_seq_output",
        "fused_bias_fc",
        "fused_dropout_add_ln",
        "max_trained_positions",
        "pad_vocab_size_multiple",
        "parallel_block_tied_norm",
        "reorder_and_upcast_attn",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
        "use_xentropy",
    )
    BIASED: ClassVar[bool] = False
    # the feed-forward is SwiGLU, whatever the inherited field says
    SPELLED: ClassVar[Mapping[str, str]] = {"norm_eps": "layer_norm_eps", "hidden_act": "_"}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the family's default of RoPE's base."""
        named = {"rope_theta", "rope_parameters"} & given.keys()
        return given if named else given | {"rope_theta": 1000.0}

    @property
    def head_size(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads


class Block(rotary_encoder.PostNormBlock):
    def feed_forward(self, cfg: Any) -> nn.Module:
        return GatedMLP(cfg.hidden_size, cfg.intermediate_size)


class Encoder(rotary_encoder.Encoder):
    block = Block


class NomicBertModel(encoder.EncoderModel):
    encoder = Encoder


ARCH = Architecture(
    name="nomic_bert",
    config=NomicBertConfig,
    model=NomicBertModel,
    weights=(
        rename("attn.qkv_proj.weight", "attn.Wqkv.weight"),
        concat("mlp.gate_up_proj.weight", "mlp.fc12.weight", "mlp.fc11.weight"),
        *named(
            {
                "attn.o_proj": "attn.out_proj",
                "attn_norm": "norm1",
                "mlp.down_proj": "mlp.fc2",
                "mlp_norm": "norm2",
                "embeddings.LayerNorm": "emb_ln",
                "head.dense": "nomic_bert.pooler.dense",
                "head.out": "classifier",
            }
        ),
        *dropped("pooler.dense"),
        drop("cls.*"),
        rename("model.embeddings.*", "nomic_bert.embeddings.*"),
        rename("model.emb_ln.*", "nomic_bert.emb_ln.*"),
        rename("model.layers.*", "nomic_bert.encoder.layers.*"),
    ),
    base="nomic_bert",
)

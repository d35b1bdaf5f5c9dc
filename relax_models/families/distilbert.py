"""DistilBERT encoders: BERT without segments; its class head has ReLU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .. import encoder
from ..arch import Architecture, drop, rename
from ..encoder import EncoderConfig, dropped, joined, named


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilBertConfig(EncoderConfig):
    """Fields of DistilBERT's config.json that shape the computation."""

    SPELLED: ClassVar[Mapping[str, str]] = {
        "hidden_size": "dim",
        "intermediate_size": "hidden_dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "hidden_act": "activation",
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "dropout",
        "attention_dropout",
        "qa_dropout",
        "seq_classif_dropout",
        "sinusoidal_pos_embds",  # how the table of positions began; the checkpoint has it
        "tie_weights_",
    )


class ClassHead(encoder.ClassHead):
    activation = "relu"


class DistilBertModel(encoder.EncoderModel):
    head_kind = ClassHead


ARCH = Architecture(
    name="distilbert",
    config=DistilBertConfig,
    model=DistilBertModel,
    weights=(
        *joined("attn.qkv_proj", "attention.q_lin", "attention.k_lin", "attention.v_lin"),
        *named(
            {
                "attn.o_proj": "attention.out_lin",
                "attn_norm": "sa_layer_norm",
                "mlp.up_proj": "ffn.lin1",
                "mlp.down_proj": "ffn.lin2",
                "mlp_norm": "output_layer_norm",
                "head.dense": "pre_classifier",
                "head.out": "classifier",
            }
        ),
        *dropped("vocab_transform", "vocab_layer_norm", "vocab_projector"),
        drop("embeddings.position_ids"),
        rename("model.embeddings.*", "distilbert.embeddings.*"),
        rename("model.layers.*", "distilbert.transformer.layer.*"),
    ),
    base="distilbert",
)

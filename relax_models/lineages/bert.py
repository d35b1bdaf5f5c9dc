"""BERT's configuration and the weight rules of its layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..arch import WeightRule, drop
from ..config import Range
from ..encoder import EncoderConfig, joined, named


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig(EncoderConfig):
    """Fields of BERT's config.json that shape the computation."""

    type_vocab_size: Annotated[int, Range(1, 2**10)] = 2
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    )


# Rules of the layers of BERT and its descendants, without the name of the family.
LAYERS: tuple[WeightRule, ...] = (
    *joined("attn.qkv_proj", *(f"attention.self.{name}" for name in ("query", "key", "value"))),
    *named(
        {
            "attn.o_proj": "attention.output.dense",
            "attn_norm": "attention.output.LayerNorm",
            "mlp.up_proj": "intermediate.dense",
            "mlp.down_proj": "output.dense",
            "mlp_norm": "output.LayerNorm",
        }
    ),
    drop("embeddings.position_ids"),
    drop("embeddings.token_type_ids"),
    drop("cls.*"),
)

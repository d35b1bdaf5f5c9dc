"""MPNet encoders (all-mpnet-base-v2): BERT with biases of scores by distance, as T5 has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from wherry.ops import RaggedAttentionSpec

from .. import encoder
from ..arch import Architecture, drop, rename
from ..config import Range
from ..encoder import EncoderConfig, Shared, dropped, joined, named
from ..layers.dense import exact
from ..layers.relative import biases
from ..step import Batch

REACH = 128  # distances from here on share a bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class MPNetConfig(EncoderConfig):
    """Fields of MPNet's config.json that shape the computation."""

    relative_attention_num_buckets: Annotated[int, Range(4, 2**10)] = 32
    BEFORE: ClassVar[int] = 2  # the padding token's position, 1, and the one before it

    def attention_shape(self, layer: int = 0) -> RaggedAttentionSpec:
        return replace(EncoderConfig.attention_shape(self, layer), reach=REACH)


class Encoder(encoder.Encoder):
    def __init__(self, cfg: MPNetConfig) -> None:
        super().__init__(cfg)
        self.distances = exact((cfg.relative_attention_num_buckets, cfg.num_attention_heads))

    def shared(self, batch: Batch) -> Shared:
        """Return the bias of each distance, float32 [h, 2 * REACH + 1]."""
        return Shared(bias=biases(self.distances, REACH))


class MPNetModel(encoder.EncoderModel):
    encoder = Encoder


ARCH = Architecture(
    name="mpnet",
    config=MPNetConfig,
    model=MPNetModel,
    weights=(
        *joined("attn.qkv_proj", *(f"attention.attn.{name}" for name in "qkv")),
        *named(
            {
                "attn.o_proj": "attention.attn.o",
                "attn_norm": "attention.LayerNorm",
                "mlp.up_proj": "intermediate.dense",
                "mlp.down_proj": "output.dense",
                "mlp_norm": "output.LayerNorm",
                "head.dense": "classifier.dense",
                "head.out": "classifier.out_proj",
            }
        ),
        *dropped("pooler.dense"),
        drop("embeddings.position_ids"),
        drop("lm_head.*"),
        rename("model.distances", "mpnet.encoder.relative_attention_bias.weight"),
        rename("model.embeddings.*", "mpnet.embeddings.*"),
        rename("model.layers.*", "mpnet.encoder.layer.*"),
    ),
    base="mpnet",
)

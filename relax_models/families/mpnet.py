"""MPNet encoders (all-mpnet-base-v2): BERT with biases of scores by distance, as T5 has them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from tvm import te
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import RaggedAttentionSpec

from .. import encoder
from ..arch import Architecture, drop, rename
from ..config import Range
from ..encoder import EncoderConfig, Shared, dropped, joined, named
from ..layers import exact
from ..step import Batch

REACH = 128  # distances from here on share a bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class MPNetConfig(EncoderConfig):
    """Fields of MPNet's config.json that shape the computation."""

    relative_attention_num_buckets: Annotated[int, Range(4, 2**10)] = 32
    BEFORE: ClassVar[int] = 2  # the padding token's position, 1, and the one before it

    def attention_shape(self, layer: int = 0) -> RaggedAttentionSpec:
        return replace(EncoderConfig.attention_shape(self, layer), reach=REACH)


def bucket(distance: int, buckets: int) -> int:
    """Return the bucket of a key `distance` rows after the query.

    Half of the buckets are for keys after it. Half of each half are exact distances, the others
    grow logarithmically up to 128. Source: https://arxiv.org/abs/1910.10683, section 2.1.
    """
    half = buckets // 2
    few, n = half // 2, abs(distance)
    if n >= few:
        # in float32, as transformers computes it: a border may fall on a whole number
        ratio = np.log(np.float32(n) / np.float32(few)) / np.float32(math.log(REACH / few))
        n = min(few + int(ratio * np.float32(half - few)), half - 1)
    return n + (half if distance > 0 else 0)


class Encoder(encoder.Encoder):
    def __init__(self, cfg: MPNetConfig) -> None:
        super().__init__(cfg)
        self.buckets, self.heads = cfg.relative_attention_num_buckets, cfg.num_attention_heads
        self.distances = exact((self.buckets, self.heads))

    def shared(self, batch: Batch) -> Shared:
        """Return the bias of each distance, float32 [h, 2 * REACH + 1]."""
        found = [bucket(d, self.buckets) for d in range(-REACH, REACH + 1)]
        rows = Tensor.from_const(np.array(found, np.int32))
        shape = (self.heads, len(found))
        bias = op.tensor_expr_op(
            lambda table, at: te.compute(shape, lambda h, d: table[at[d], h], "distances"),
            "distances",
            [self.distances, rows],
        )
        return Shared(bias=bias)


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

"""Jina's encoders (jina-embeddings-v3, without its adapters): XLM-RoBERTa with RoPE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import encoder, rotary_encoder
from ..arch import Architecture, drop, rename
from ..config import Epsilon, Positions
from ..encoder import dropped, named
from ..rotary_encoder import RotaryConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class JinaEmbeddingsV3Config(RotaryConfig):
    """Fields of JinaEmbeddingsV3's config.json that shape the computation."""

    max_position_embeddings: Positions = 8194
    norm_eps: Epsilon = 1e-5

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the family's default of RoPE's base."""
        named = {"rope_theta", "rope_parameters"} & given.keys()
        return given if named else given | {"rope_theta": 20000.0}


class JinaEmbeddingsV3Model(encoder.EncoderModel):
    encoder = rotary_encoder.Encoder


ARCH = Architecture(
    name="jina_embeddings_v3",
    config=JinaEmbeddingsV3Config,
    model=JinaEmbeddingsV3Model,
    weights=(
        *named(
            {
                "attn.qkv_proj": "mixer.Wqkv",
                "attn.o_proj": "mixer.out_proj",
                "attn_norm": "norm1",
                "mlp.up_proj": "mlp.fc1",
                "mlp.down_proj": "mlp.fc2",
                "mlp_norm": "norm2",
                "embeddings.LayerNorm": "emb_ln",
                "head.dense": "classifier.dense",
                "head.out": "classifier.out_proj",
            }
        ),
        *dropped("pooler.dense"),
        drop("lm_head.*"),
        rename("model.embeddings.*", "roberta.embeddings.*"),
        rename("model.emb_ln.*", "roberta.emb_ln.*"),
        rename("model.layers.*", "roberta.encoder.layers.*"),
    ),
    base="roberta",
)

"""Weight rules with Falcon's names (Falcon, Bloom)."""

from __future__ import annotations

from collections.abc import Mapping

from .. import classic
from ..arch import WeightRule, rename, reorder
from ..decoder import TIED

KINDS = ("weight", "bias")

NAMES: Mapping[str, str] = {
    "self_attn.qkv_proj": "self_attention.query_key_value",
    "self_attn.o_proj": "self_attention.dense",
    "mlp.up_proj": "mlp.dense_h_to_4h",
    "mlp.down_proj": "mlp.dense_4h_to_h",
    "model.norm": "transformer.ln_f",
}

WEIGHTS: tuple[WeightRule, ...] = (
    TIED,
    *(
        rename(f"{param}.{kind}", f"{source}.{kind}")
        for param, source in NAMES.items()
        for kind in KINDS
    ),
    rename("model.embed_tokens.weight", "transformer.word_embeddings.weight"),
    rename("model.layers.*", "transformer.h.*"),
    *(reorder(f"query_key_value.{kind}", classic.by_head) for kind in KINDS),
)

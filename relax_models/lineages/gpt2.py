"""GPT-2's configuration, and the weight rules with its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wherry.ops import AttentionShape

from .. import classic, decoder
from ..arch import WeightRule, drop, rename
from ..config import Positions


@dataclass(frozen=True, slots=True, kw_only=True)
class GPT2Config(classic.ClassicConfig):
    """Fields of GPT2's config.json that shape the computation."""

    max_position_embeddings: Positions = 1024
    tie_word_embeddings: bool = True
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    ROTATES: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = classic.SPELLED
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"add_cross_attention": (False,)}
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attn_pdrop",
        "n_ctx",
        "n_special",
        "predict_special_tokens",
        "_num_labels",
        "reorder_and_upcast_attn",
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
    )

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        scale = shape.scale if self.scale_attn_weights else 1.0
        return replace(
            shape, scale=scale / (layer + 1 if self.scale_attn_by_inverse_layer_idx else 1)
        )


# Weight rules with names that GPT-2 introduced.
NAMES: tuple[WeightRule, ...] = (
    *(
        rename(f"{param}.{kind}", f"{source}.{kind}")
        for param, source in (
            ("self_attn.qkv_proj", "attn.c_attn"),
            ("self_attn.o_proj", "attn.c_proj"),
            ("mlp.up_proj", "mlp.c_fc"),
            ("mlp.down_proj", "mlp.c_proj"),
            ("input_layernorm", "ln_1"),
            ("post_attention_layernorm", "ln_2"),
            ("model.norm", "transformer.ln_f"),
        )
        for kind in ("weight", "bias")
    ),
    rename("model.embed_tokens.weight", "transformer.wte.weight"),
    rename("model.embed_positions.weight", "transformer.wpe.weight"),
    rename("model.layers.*", "transformer.h.*"),
    drop("attn.bias"),  # a stored causal mask
    drop("attn.masked_bias"),
)

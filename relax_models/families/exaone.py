"""EXAONE 3 and 3.5 decoders: Llama with other names of tensors and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .. import decoder
from ..arch import Architecture, concat, drop, rename
from ..config import Epsilon
from ..decoder import TIED, CausalLM


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaoneConfig(decoder.DecoderConfig):
    """Fields of Exaone's config.json that shape the computation."""

    rms_norm_eps: Epsilon = 1e-5
    SPELLED: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "num_layers",
        "rms_norm_eps": "layer_norm_epsilon",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"activation_function": ("silu",)}
    IGNORED: ClassVar[tuple[str, ...]] = ("embed_dropout",)


OWN = "attn.attention"
ARCH = Architecture(
    name="exaone",
    config=ExaoneConfig,
    model=CausalLM,
    weights=(
        concat("self_attn.qkv_proj.weight", *(f"{OWN}.{name}_proj.weight" for name in "qkv")),
        concat("mlp.gate_up_proj.weight", "mlp.c_fc_0.weight", "mlp.c_fc_1.weight"),
        TIED,
        rename("self_attn.o_proj.weight", f"{OWN}.out_proj.weight"),
        rename("mlp.down_proj.weight", "mlp.c_proj.weight"),
        rename("input_layernorm.weight", "ln_1.weight"),
        rename("post_attention_layernorm.weight", "ln_2.weight"),
        rename("model.norm.weight", "transformer.ln_f.weight"),
        rename("model.embed_tokens.weight", "transformer.wte.weight"),
        rename("model.layers.*", "transformer.h.*"),
        drop("rotary.inv_freq"),
        drop("rotary_emb.inv_freq"),
    ),
    base="transformer",
)

"""HunYuan dense decoders: Llama with norms of q and k after RoPE; `alpha` scales RoPE's base."""

from __future__ import annotations

from ..arch import Architecture, rename
from ..blocks import qk_norm
from ..decoder import WEIGHTS
from ..lineages.hunyuan import HunYuanDenseV1Config

ARCH = Architecture(
    name="hunyuan_v1_dense",
    config=HunYuanDenseV1Config,
    model=qk_norm.CausalLM,
    weights=(
        *WEIGHTS,
        rename("q_norm.weight", "query_layernorm.weight"),
        rename("k_norm.weight", "key_layernorm.weight"),
    ),
)

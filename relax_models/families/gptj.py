"""GPT-J decoders: parallel attention and feed-forward, interleaved RoPE."""

from __future__ import annotations

from .. import classic
from ..arch import Architecture, concat, reorder
from ..lineages import gptj
from ..lineages.gptj import GPTJConfig

ARCH = Architecture(
    name="gptj",
    config=GPTJConfig,
    model=classic.BiasedLM,
    weights=(
        concat(
            "self_attn.qkv_proj.weight",
            *(f"attn.{name}_proj.weight" for name in "qkv"),
        ),
        *gptj.NAMES,
        *(reorder(f"attn.{name}_proj.weight", gptj.pairs) for name in "qk"),
    ),
    base="transformer",
)

"""Qwen3.5 decoders, text: three layers of four are Gated DeltaNets, the fourth is gated attention.

Source: transformers' `modeling_qwen3_5.py`.
"""

from __future__ import annotations

from ..arch import Architecture, concat, drop
from ..decoder import WEIGHTS
from ..drafts import mtp
from ..lineages import qwen3_5
from ..lineages.qwen3_5 import GATED, Qwen3_5Config, lacks_block

ARCH = Architecture(
    name="qwen3_5_text",
    config=Qwen3_5Config,
    model=qwen3_5.CausalLM,
    weights=(
        *GATED,
        *WEIGHTS,
        concat("in_proj_ba.weight", "in_proj_b.weight", "in_proj_a.weight"),
        drop("mtp.*"),
    ),
    drafts=mtp.beside_layers(qwen3_5.Block, lacks_block),
)

"""GPT-2 decoders: learned positions, LayerNorm, biases, GELU without a gate."""

from __future__ import annotations

from .. import classic
from ..arch import Architecture, WeightRule, transpose
from ..decoder import TIED
from ..lineages import gpt2
from ..lineages.gpt2 import GPT2Config

# Weight rules of linears that are stored as [in, out].
TRANSPOSED: tuple[WeightRule, ...] = tuple(
    transpose(f"{name}.weight", f"{name}.weight")
    for name in ("qkv_proj", "o_proj", "up_proj", "down_proj")
)
ARCH = Architecture(
    name="gpt2",
    config=GPT2Config,
    model=classic.PositionedLM,
    weights=(*TRANSPOSED, TIED, *gpt2.NAMES),
    base="transformer",
)

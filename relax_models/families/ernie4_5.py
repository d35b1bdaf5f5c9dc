"""ERNIE 4.5 dense decoders: Llama with interleaved RoPE."""

from __future__ import annotations

from ..arch import Architecture
from ..decoder import PAIRED, WEIGHTS, CausalLM
from ..lineages.ernie4_5 import Ernie4_5Config

ARCH = Architecture(
    name="ernie4_5", config=Ernie4_5Config, model=CausalLM, weights=(*WEIGHTS, *PAIRED)
)

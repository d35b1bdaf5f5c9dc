"""Cohere 2 decoders (Command R7B, Command A): sliding windows in most layers, NoPE in others."""

from __future__ import annotations

from .. import decoder
from ..arch import Architecture
from ..decoder import PAIRED, WEIGHTS
from ..lineages.cohere2 import Cohere2Config


class Decoder(decoder.Decoder):
    block = decoder.ParallelBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="cohere2", config=Cohere2Config, model=CausalLM, weights=(*WEIGHTS, *PAIRED)
)

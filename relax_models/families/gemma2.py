"""Gemma 2 decoders: Gemma with windows in every other layer, more norms, and softcapped scores."""

from __future__ import annotations

from .. import decoder
from ..arch import Architecture
from ..decoder import WEIGHTS
from ..lineages import gemma
from ..lineages.gemma import Gemma2Config


class Decoder(decoder.Decoder):
    block = gemma.SandwichBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="gemma2", config=Gemma2Config, model=CausalLM, weights=WEIGHTS)

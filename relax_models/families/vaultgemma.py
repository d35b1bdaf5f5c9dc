"""VaultGemma decoders: Gemma 2 without the norms after attention and feed-forward."""

from __future__ import annotations

from .. import decoder
from ..arch import Architecture, rename
from ..decoder import WEIGHTS
from ..lineages import gemma
from ..lineages.gemma import Gemma2Config


class Decoder(decoder.Decoder):
    block = gemma.Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="vaultgemma",
    config=Gemma2Config,
    model=CausalLM,
    weights=(
        *WEIGHTS,
        rename("post_attention_layernorm.weight", "pre_feedforward_layernorm.weight"),
    ),
)

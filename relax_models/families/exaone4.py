"""EXAONE 4 and 4.5 decoders: post-norm, QK norm; layers without a window have no RoPE."""

from __future__ import annotations

from .. import decoder
from ..arch import Architecture, drop
from ..decoder import WEIGHTS
from ..drafts import mtp
from ..lineages.exaone4 import Exaone4Config


class Block(decoder.PostNormBlock):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


# EXAONE 4.5 and K-EXAONE have a block, which their config.json does not always count.
ARCH = Architecture(
    name="exaone4",
    config=Exaone4Config,
    model=CausalLM,
    weights=(*WEIGHTS, drop("mtp.*")),
    drafts=mtp.beside_layers(Block, lambda _cfg: None),
)

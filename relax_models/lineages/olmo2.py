"""OLMo 2's decoder, which OLMo 3 has, too."""

from __future__ import annotations

from .. import decoder


class Block(decoder.PostNormBlock):
    attention = decoder.ProjectionNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder

"""Decoders with an RMSNorm of each query and key head, dense and with experts."""

from __future__ import annotations

from .. import decoder
from . import experts


class Block(decoder.Block):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


class SparseBlock(experts.Block):
    attention = decoder.HeadNormAttention


class SparseDecoder(decoder.Decoder):
    block = SparseBlock


class SparseLM(decoder.CausalLM):
    decoder = SparseDecoder

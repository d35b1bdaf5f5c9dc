"""Decoders whose feed-forward is a squared ReLU without a gate."""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend import nn

from .. import decoder
from ..layers.dense import MLP


class Block(decoder.Block):
    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer."""
        return MLP(cfg.hidden_size, cfg.intermediate_size, "relu2", cfg.mlp_bias)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder

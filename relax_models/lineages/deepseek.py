"""DeepSeek's decoder: latent attention and experts, and the weight rules with its names."""

from __future__ import annotations

from ..arch import spare_layers
from ..blocks import experts, latent
from ..blocks.experts import STACKED
from ..decoder import WEIGHTS as DECODER

# Fields of config.json about training, and fields that follow from others.
UNREAD = ("aux_loss_alpha", "seq_aux", "ep_size", "qk_head_dim")


class Block(experts.Block):
    attention = latent.Attention


class Decoder(experts.Decoder):
    block = Block


class CausalLM(experts.CausalLM):
    decoder = Decoder


WEIGHTS = (
    *STACKED,
    *latent.WEIGHTS,
    *DECODER,
    spare_layers("model.layers.*.*", "num_nextn_predict_layers"),
)

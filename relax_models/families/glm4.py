"""GLM-4 0414 decoders: GLM with norms before and after attention and feed-forward."""

from __future__ import annotations

from .. import decoder
from ..arch import Architecture, rename
from ..lineages import glm
from ..lineages.glm import GlmConfig


class Decoder(decoder.Decoder):
    block = decoder.SandwichBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


# The order matters: the second rename creates a name that the first one would match.
WEIGHTS = (
    *glm.WEIGHTS,
    rename("post_attention_layernorm.weight", "post_self_attn_layernorm.weight"),
    rename("pre_feedforward_layernorm.weight", "post_attention_layernorm.weight"),
    rename("post_feedforward_layernorm.weight", "post_mlp_layernorm.weight"),
)
ARCH = Architecture(name="glm4", config=GlmConfig, model=CausalLM, weights=WEIGHTS)

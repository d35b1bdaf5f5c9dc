"""HyperCLOVA X decoders: Granite with additional norms after attention and feed-forward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, rename
from ..config import Factor
from ..decoder import WEIGHTS, ModelScales
from ..lineages.llama import LlamaConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperCLOVAXConfig(LlamaConfig):
    """Fields of HyperCLOVAX's config.json; logits are multiplied, not divided, by their scale."""

    embedding_multiplier: Factor = 1.0
    attention_multiplier: Factor | None = None  # scale of attention scores; None: 1 / sqrt(e)
    residual_multiplier: Factor = 1.0
    logits_scaling: Factor = 1.0
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "use_post_norm": (True,),
    }

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, scale=float(self.attention_multiplier or shape.scale))

    def scales(self) -> ModelScales:
        return ModelScales(
            embedding=float(self.embedding_multiplier),
            residual=float(self.residual_multiplier),
            logits=float(self.logits_scaling),
        )


class Decoder(decoder.Decoder):
    block = decoder.SandwichBlock


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="hyperclovax",
    config=HyperCLOVAXConfig,
    model=CausalLM,
    weights=(
        *WEIGHTS,
        # The order matters: the second rename creates a name that the first one would match.
        rename("post_attention_layernorm.weight", "post_norm1.weight"),
        rename("pre_feedforward_layernorm.weight", "post_attention_layernorm.weight"),
        rename("post_feedforward_layernorm.weight", "post_norm2.weight"),
    ),
)

"""Muse Glimmer decoders, text: gated attention between norms, normalized embeddings.

Layers with a sliding window have RoPE, those with a base of 0 none. Norms of embeddings and of
heads have no weights; queries have a constant factor instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, RopeConfig, constant
from ..blocks.gated_attention import GatedAttention
from ..config import Cap, Epsilon, Factor, Positions, Range, Size
from ..decoder import WEIGHTS, Biases, ModelScales
from ..layers.norms import RMSNorm
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class MuseGlimmerConfig(decoder.WindowedConfig):
    """Fields of MuseGlimmerText's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "hidden_activation": ("silu",),
    }
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    post_norm_eps: Epsilon = 1e-8  # of the norms after attention and feed-forward
    attention_bias: bool = False
    sliding_window: Positions | None = 2048
    # RoPE's base, the same in all layers that rotate, 0 in those that do not; (): as windows
    layer_rope_theta: tuple[Annotated[float, Range(0.0, 1e15)], ...] = ()
    qk_scale_factor: Factor = 3.87  # multiplies queries
    output_multiplier: Factor = 0.19611613513818404  # multiplies logits
    final_logit_softcapping: Cap = 20.0

    def problems(self) -> Iterator[str]:
        yield from decoder.WindowedConfig.problems(self)
        given, count = self.layer_rope_theta, self.num_hidden_layers
        if given and len(given) != count:
            yield f"layer_rope_theta: {len(given)} found for num_hidden_layers, {count}"
        others = sorted(set(given) - {0.0, float(self.rope.theta)})
        if others:
            yield f"layer_rope_theta: found {others[0]}, supported are 0 and {self.rope.theta}"

    def _last_of_four(self, layer: int) -> bool:
        return (self.num_hidden_layers - 1 - layer) % 4 == 0

    def is_windowed(self, layer: int) -> bool:
        return not self._last_of_four(layer)

    def rope_of(self, layer: int) -> RopeConfig | None:
        if self.layer_rope_theta:
            return self.rope if self.layer_rope_theta[layer] else None
        return None if self._last_of_four(layer) else self.rope

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        scale = shape.scale * self.qk_scale_factor
        return replace(shape, scale=scale, qk_norm_eps=self.rms_norm_eps)

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(
            logits=float(self.output_multiplier), logit_cap=float(self.final_logit_softcapping)
        )


class Block(decoder.SandwichBlock):
    attention = GatedAttention

    def __init__(self, cfg: MuseGlimmerConfig, layer: int) -> None:
        super().__init__(cfg, layer)
        d, before, after = cfg.hidden_size, cfg.rms_norm_eps, cfg.post_norm_eps
        self.input_layernorm = RMSNorm(d, before, offset=1.0)
        self.post_attention_layernorm = RMSNorm(d, after, offset=1.0)
        self.pre_feedforward_layernorm = RMSNorm(d, before, offset=1.0)
        self.post_feedforward_layernorm = RMSNorm(d, after, offset=1.0)


class Decoder(decoder.Decoder):
    block: type[nn.Module] = Block

    def __init__(self, cfg: MuseGlimmerConfig) -> None:
        super().__init__(cfg)
        self.embed_norm = cfg.norm()

    def embedded(self, batch: Batch) -> Tensor:
        return self.embed_norm(super().embedded(batch))


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="muse_glimmer_text",
    config=MuseGlimmerConfig,
    model=CausalLM,
    weights=(
        constant("embed_norm.weight", 1.0),
        constant("self_attn.q_norm.weight", 1.0),
        constant("self_attn.k_norm.weight", 1.0),
        *WEIGHTS,
    ),
)

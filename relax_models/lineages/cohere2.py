"""Cohere 2's configuration, dense and with experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import RopeConfig
from ..config import Epsilon, Positions, Range
from ..decoder import Biases, ModelScales
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohere2Config(decoder.WindowedConfig):
    """Fields of Cohere2's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    layer_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    logit_scale: Annotated[float, Range(1e-6, 1e6)] = 0.0625
    sliding_window: Positions | None = 4096
    sliding_window_pattern: Annotated[int, Range(1, 2**12)] = 4  # every Nth layer has no window
    IGNORED: ClassVar[tuple[str, ...]] = ("cache_implementation",)
    ALIASES: ClassVar[Mapping[str, str]] = {"layer_switch": "sliding_window_pattern"}
    # Fields of published files, which transformers does not read.
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "order_of_interleaved_layers": ("local_attn_first",),
        "position_embedding_type": ("rope_gptj",),
        "rotary_pct": (1.0,),
        "use_embedding_sharing": (True,),
        "use_gated_activation": (True,),
        "use_parallel_block": (True,),
        "use_parallel_embedding": (False,),
        "use_qk_norm": (False,),
    }

    def is_windowed(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.rope if self.windowed(layer) else None

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(logits=float(self.logit_scale))

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.layer_norm_eps, bias=False)

"""Configurations of Qwen 2 and 3, and of their experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape, RouteSpec

from .. import decoder
from ..blocks.experts import Experts
from ..blocks.rope_axes import RopeAxesConfig
from ..config import Count, Positions, Range, Size
from ..decoder import Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen2Config(decoder.WindowedConfig):
    """Fields of Qwen2's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 32}
    max_position_embeddings: Positions = 32768
    sliding_window: Positions | None = 4096
    use_sliding_window: bool = False
    # the lowest layers, which have no sliding window
    max_window_layers: Annotated[int, Range(0, 2**12)] = 28

    @property
    def window(self) -> int | None:
        return self.sliding_window if self.use_sliding_window else None

    def is_windowed(self, layer: int) -> bool:
        return layer >= self.max_window_layers

    def biases(self) -> Biases:
        return Biases(qkv=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3Config(RopeAxesConfig, Qwen2Config):
    """Fields of Qwen3's config.json that shape the computation; with images, it is Qwen3-VL's."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 32768
    attention_bias: bool = False

    def problems(self) -> Iterator[str]:
        yield from Qwen2Config.problems(self)
        yield from self.problems_of_axes()

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        axes = self.axes(len(shape.inv_freq))
        return replace(shape, qk_norm_eps=self.rms_norm_eps, axes=axes)


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class SparseConfig:
    """Configuration fields of Qwen's mixtures of experts."""

    ALIASES: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    decoder_sparse_step: Count = 1
    mlp_only_layers: tuple[Annotated[int, Range(0, 2**12)], ...] = ()
    moe_intermediate_size: Size = 768
    num_experts_per_tok: Count = 8
    num_experts: Count = 128
    norm_topk_prob: bool = False

    def experts_of(self, layer: int) -> Experts | None:
        if layer in self.mlp_only_layers or (layer + 1) % self.decoder_sparse_step:
            return None
        routing = RouteSpec(
            experts=self.num_experts,
            top_k=self.num_experts_per_tok,
            normalized=self.norm_topk_prob,
        )
        return Experts(routing=routing, size=self.moe_intermediate_size)

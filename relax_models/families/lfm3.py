"""LFM3 decoders: LFM2 with sliding windows, gates of attention's heads, and norms after each part.

Layers with a window and those without have different RoPE. Source: transformers'
`modeling_lfm3.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor, op

from .. import decoder
from ..arch import Architecture, RopeConfig
from ..config import Count, Positions, Size
from ..decoder import FULL, WEIGHTS, WINDOWED, Biases
from ..layers.dense import Unquantized
from ..layers.rope_kinds import rope_by_kind
from ..lineages import lfm2
from ..lineages.lfm2 import ConvConfig
from ..step import Batch

ROPE = {
    WINDOWED: {"rope_type": "default", "rope_theta": 10000.0},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1000000.0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lfm3Config(ConvConfig):
    """Fields of LFM3's config.json that shape the computation."""

    intermediate_size: Size = 7680
    head_dim: Size | None = 128
    conv_L_cache: Count = 7
    sliding_window: Positions | None = 256
    local_rope: RopeConfig  # RoPE of layers with a sliding window
    attention_bias: bool = False
    use_sandwich_norm: bool = True  # whether norms follow each part, before it is added
    use_attention_gate: bool = True
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4}
    KINDS: ClassVar[tuple[str, ...]] = (FULL, WINDOWED, lfm2.CONV)

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer."""
        return rope_by_kind(given, ROPE)

    def problems(self) -> Iterator[str]:
        yield from ConvConfig.problems(self)
        if WINDOWED in self.layer_types and self.sliding_window is None:
            yield f"layer_types: {WINDOWED} without a sliding_window"

    def default_kind(self, layer: int) -> str:
        if layer % 4 == 2:
            return FULL
        return WINDOWED if layer % 4 == 0 and layer > 0 else lfm2.CONV

    def windowed(self, layer: int) -> bool:
        """Return whether `layer` has the sliding window."""
        return self.kind(layer) == WINDOWED

    def window_of(self, layer: int) -> int | None:
        window = self.sliding_window if self.windowed(layer) else None
        return window if window and window < self.context else None

    def rope_of(self, layer: int) -> RopeConfig | None:
        return self.local_rope if self.windowed(layer) else self.rope

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)


class Attention(decoder.HeadNormAttention):
    """Attention with norms of q and k heads, whose heads are multiplied by sigmoid(gate).

    The gate has one row per head, so its linear stays float32 in every scheme.
    """

    def __init__(self, cfg: Lfm3Config, layer: int) -> None:
        super().__init__(cfg, layer)
        gated, heads = cfg.use_attention_gate, self.shape.heads
        self.gate_proj = Unquantized(cfg.hidden_size, heads, bias=False) if gated else None

    def attended(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute the heads' results: x [n, d] -> [n, h * e]."""
        y = super().attended(x, batch)
        if self.gate_proj is None:
            return y
        n, h, e = x.shape[0], self.shape.heads, self.shape.head_dim
        gate = op.reshape(op.sigmoid(self.gate_proj(x)), [n, h, 1])
        return op.reshape(op.reshape(y, [n, h, e]) * gate, [n, h * e])


class Block(lfm2.Block):
    """Block with norms before and, if the configuration says so, after its parts."""

    attention = Attention

    def __init__(self, cfg: Lfm3Config, layer: int) -> None:
        super().__init__(cfg, layer)
        self.post_operator_norm = cfg.norm() if cfg.use_sandwich_norm else None
        self.post_ffn_norm = cfg.norm() if cfg.use_sandwich_norm else None

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        mixer = self.self_attn if self.attends else self.conv
        y = mixer(self.operator_norm(x), batch)
        x = x + (y if self.post_operator_norm is None else self.post_operator_norm(y))
        y = self.feed_forward(self.ffn_norm(x))
        return x + (y if self.post_ffn_norm is None else self.post_ffn_norm(y))


class Decoder(lfm2.Decoder):
    block = Block


class CausalLM(lfm2.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="lfm3",
    config=Lfm3Config,
    model=CausalLM,
    weights=(*lfm2.DENSE, *WEIGHTS),
)

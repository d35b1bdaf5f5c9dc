"""Qwen3 dense decoders: Llama with an RMSNorm over each query and key head.

Axes: n rows, d hidden, h query heads, g kv heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from . import llama
from .arch import Architecture
from .config import Positions, Range, Size
from .layers import rms_norm
from .state import AttentionShape, PagedKV


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3Config(llama.LlamaConfig):
    """Fields of config.json that shape the computation."""

    head_dim: Size | None = 128
    max_position_embeddings: Positions = 32768
    layer_types: tuple[str, ...] = ()
    sliding_window: Positions | None = None  # of no effect without use_sliding_window
    max_window_layers: Annotated[int, Range(0, 2**12)] | None = None  # likewise
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "use_sliding_window": (False,),
    }

    def problems(self) -> Iterator[str]:
        """As Llama's, and windows."""
        yield from llama.LlamaConfig.problems(self)
        windowed = sorted(set(self.layer_types) - {"full_attention"})
        if windowed:
            yield f"layer_types: found {', '.join(windowed)}, supported is full_attention alone"

    def attention_shape(self) -> AttentionShape:
        """As Llama's, with the norms."""
        shape = llama.LlamaConfig.attention_shape(self)
        return replace(shape, qk_norm_eps=self.rms_norm_eps)


class Attention(llama.Attention):
    def __init__(self, cfg: Qwen3Config, shape: AttentionShape) -> None:
        super().__init__(cfg, shape)
        self.q_norm = rms_norm(shape.head_dim, cfg.rms_norm_eps)
        self.k_norm = rms_norm(shape.head_dim, cfg.rms_norm_eps)

    def forward(self, x: Tensor, cache: PagedKV, layer: int) -> Tensor:
        """X [n, d] -> [n, d]."""
        norms = (self.q_norm.weight, self.k_norm.weight)
        return self.o_proj(cache.attend(layer, self.qkv_proj(x), self.shape, norms))


class Block(llama.Block):
    attention = Attention


class Decoder(llama.Decoder):
    block = Block


class CausalLM(llama.CausalLM):
    decoder = Decoder


ARCH = Architecture(name="qwen3", config=Qwen3Config, model=CausalLM, weights=llama.WEIGHTS)

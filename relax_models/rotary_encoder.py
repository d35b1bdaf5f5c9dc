"""Encoders whose attention rotates queries and keys: positions are in the angles, not in a table.

Axes: n rows, d hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from . import encoder
from .arch import RopeConfig, inv_freq
from .config import Positions, Range
from .encoder import EncoderConfig, Shared
from .layers.dense import Embedding
from .layers.ragged import attend, segments
from .layers.rotated import angles, rotated
from .step import Batch

ALL = "all"  # the only kind of layer
SegmentCount = Annotated[int, Range(0, 2**10)]  # 0: no table of segments


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryConfig(EncoderConfig):
    """Fields of a configuration with one rotary embedding for all layers."""

    rope: RopeConfig
    max_position_embeddings: Positions = 8192
    type_vocab_size: SegmentCount = 1

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields; all elements of a head have to rotate."""
        yield from EncoderConfig.problems(self)
        if self.head_size % 2 or self.rope.partial_rotary_factor != 1.0:
            yield f"hidden_size: heads of {self.head_size} elements; all of them rotate, in pairs"


class Attention(encoder.Attention):
    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = rotated(self.qkv_proj(x), shared.angles[ALL], self.spec)
        return self.o_proj(attend(qkv, batch, self.spec))


class PostNormBlock(encoder.PostNormBlock):
    attention = Attention


class Tables(nn.Module):
    """The sum of the tables of tokens and segments, normalized."""

    def __init__(self, cfg: Any) -> None:
        d, types = cfg.hidden_size, cfg.type_vocab_size
        self.separator = cfg.output.separator if types > 1 else None
        self.word_embeddings = Embedding(cfg.vocab_size, d)
        self.token_type_embeddings = Embedding(types, d) if types else None
        self.LayerNorm = cfg.norm()

    def forward(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        x = self.word_embeddings(batch.tokens)
        if self.token_type_embeddings is not None:
            x = x + self.token_type_embeddings(segments(batch, self.separator))
        y: Tensor = self.LayerNorm(x)
        return y


class Encoder(encoder.Encoder):
    tables: type[nn.Module] = Tables
    block: type[nn.Module] = PostNormBlock

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        self.table = inv_freq(cfg.rope, cfg.head_size, cfg.max_position_embeddings)

    def shared(self, batch: Batch) -> Shared:
        """Return the angles of all layers."""
        frequencies = [float(f) for f in self.table.inv_freq]
        return Shared(angles={ALL: angles(batch, frequencies, self.table.attention_factor)})

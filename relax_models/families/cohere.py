"""Cohere decoders (Command R, Aya): LayerNorm, parallel attention and feed-forward, logit scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops.tags import PACK, tag

from .. import decoder
from ..arch import Architecture, Pairs, constant
from ..config import Epsilon, Positions, Range
from ..decoder import PAIRED, WEIGHTS, Biases, ModelScales
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class CohereConfig(decoder.DecoderConfig):
    """Fields of Cohere's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    layer_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    logit_scale: Annotated[float, Range(1e-6, 1e6)] = 0.0625
    use_qk_norm: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"rope_theta": 500000.0}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def scales(self) -> ModelScales:
        return ModelScales(logits=float(self.logit_scale))

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.layer_norm_eps, bias=False)


class HeadNorm(nn.Module):
    """LayerNorm of each head, with separate weights per head."""

    def __init__(self, cfg: CohereConfig, heads: int) -> None:
        e = cfg.head_size
        self.heads, self.pairs = heads, Pairs(e, cfg.rope.rotary_dim(e))
        self.weight = nn.Parameter((heads, e))
        self.each = cfg.norm(e)  # norm of one head, with weights of one

    def forward(self, x: Tensor) -> Tensor:
        """Normalize each head: x [n, heads * e] -> [n, heads * e]."""
        n, (h, e) = x.shape[0], self.weight.shape
        normed = op.reshape(self.each(op.reshape(x, (n * h, e))), (n, h * e))
        func = row_reference(int(h), self.pairs, self.weight.dtype)
        out = Tensor.placeholder([h * e], self.weight.dtype)
        return normed * op.tensor_ir_op(func, "head_weights", [self.weight], out)


@cache
def row_reference(heads: int, pairs: Pairs, dtype: str) -> tirx.PrimFunc:
    """Return the PrimFunc (weight dtype [heads, e]) -> [heads * e], in the projection's order."""
    e = pairs.head_dim
    weight = te.placeholder((heads, e), dtype, "weight")
    half = pairs.rotary_dim // 2

    def element(i: tirx.Var) -> tirx.PrimExpr:
        k = i % e
        paired = tirx.Select(k < half, 2 * k, 2 * (k - half) + 1)
        return weight[i // e, tirx.Select(k < 2 * half, paired, k)]

    row = te.compute((heads * e,), element, "row")
    func = te.create_prim_func([weight, row]).without_attr("global_symbol")
    return tag(func, "head_weights", asdict(pairs)).with_attr(PACK, True)


class Attention(decoder.ProjectionNormAttention):
    """Attention with optional norms of query and key heads (`use_qk_norm`)."""

    def norm_of(self, cfg: CohereConfig, heads: int) -> nn.Module | None:
        return HeadNorm(cfg, heads) if cfg.use_qk_norm else None


class Block(decoder.ParallelBlock):
    attention = Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="cohere",
    config=CohereConfig,
    model=CausalLM,
    weights=(*WEIGHTS, *PAIRED, constant("each.weight", 1.0)),
)

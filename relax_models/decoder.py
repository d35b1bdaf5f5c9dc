"""Base classes of dense decoders: configuration, attention, blocks, and the LM head.

A family's file overrides what differs: it subclasses the configuration (`biases`, `scales`,
`attention_shape`, ...) and names its kinds of block, attention and feed-forward.

Axes: n rows, m logit rows, d hidden, h query heads, g kv heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from . import layer_kinds
from .arch import Pairs, RopeConfig, concat, drop, inv_freq, reorder, tie
from .config import Count, Epsilon, Positions, Size, VocabSize
from .layer_kinds import FULL as FULL
from .layer_kinds import WINDOWED as WINDOWED
from .layers.activations import clipped
from .layers.dense import Embedding, GatedMLP
from .layers.norms import RMSNorm
from .step import Batch, attention

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Biases:
    """Which linears of a layer have a bias."""

    qkv: bool = False
    out: bool = False
    mlp: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScales:
    """Constant multipliers of a family's embeddings, residuals and logits."""

    embedding: float = 1.0
    residual: float = 1.0  # multiplies the outputs of attention and feed-forward
    logits: float = 1.0
    logit_cap: float | None = None  # softcap: logits become cap * tanh(logits / cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Configuration fields that all decoder families share."""

    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Count
    num_attention_heads: Count
    vocab_size: VocabSize
    rope: RopeConfig
    num_key_value_heads: Count | None = None  # None: the number of query heads
    head_dim: Size | None = None  # None: hidden_size / num_attention_heads
    max_position_embeddings: Positions = 2048
    rms_norm_eps: Epsilon = 1e-6
    tie_word_embeddings: bool = False
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}

    def problems(self) -> Iterator[str]:
        """Yield contradictions between the fields about heads."""
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        if self.head_dim is None and self.hidden_size % heads:
            yield (
                f"hidden_size: {self.hidden_size} is not divisible by the {heads} of "
                "num_attention_heads, and there is no head_dim"
            )
            return
        if kv_heads and heads % kv_heads:
            yield f"num_key_value_heads: {kv_heads} does not divide num_attention_heads, {heads}"
        rotary = self.rope.rotary_dim(self.head_size)
        if rotary < 2 or rotary % 2:
            yield f"head_dim: {rotary} of {self.head_size} dimensions rotate; they rotate in pairs"
        for name in ("short_factor", "long_factor") if self.rope.kind == "longrope" else ():
            if (factors := len(getattr(self.rope, name))) != rotary // 2:
                yield f"{name}: {factors} numbers found for {rotary // 2} frequencies"

    @property
    def head_size(self) -> int:
        """Return the number of elements of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def kv_heads(self) -> int:
        """Return the number of KV heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def context(self) -> int:
        """Return the context length in tokens for which the rotary table is correct."""
        rotary_dim = self.rope.rotary_dim(self.head_size)
        table = inv_freq(self.rope, rotary_dim, self.max_position_embeddings)
        return table.max_context or self.max_position_embeddings

    @property
    def longest(self) -> int:
        """Return the longest context, in tokens, that `at` accepts."""
        return self.max_position_embeddings if self.rope.kind == "longrope" else self.context

    @property
    def ends(self) -> str:
        """Return what happens at `longest`, as an error says it."""
        return "positions end"

    def at(self, context: int) -> Self:
        """Return the configuration of a model that is compiled for `context` tokens.

        LongRoPE has other frequencies beyond its original length. A model that is compiled for more
        tokens uses them for short sequences, too: otherwise a sequence that grows past the original
        length would need all its keys recomputed.
        """
        if context <= self.context:
            return self
        return replace(self, rope=replace(self.rope, long=True))

    def rope_of(self, layer: int) -> RopeConfig | None:
        """Return the rotary embedding of a layer; None: the layer has none (NoPE)."""
        return self.rope

    def window_of(self, layer: int) -> int | None:
        """Return the sliding window of a layer in tokens, the row's own included.

        It is None for layers without a window.
        """
        return None

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        """Return the static shape of a layer's attention."""
        rope, e = self.rope_of(layer), self.head_size
        frequencies: tuple[float, ...] = ()
        scaling = 1.0
        if rope is not None:
            table = inv_freq(rope, rope.rotary_dim(e), self.max_position_embeddings)
            frequencies = tuple(float(f) for f in table.inv_freq)
            scaling = table.attention_factor
        return AttentionShape(
            cache=layer,
            heads=self.num_attention_heads,
            kv_heads=self.kv_heads,
            head_dim=e,
            scale=e**-0.5,
            inv_freq=frequencies,
            rope_scaling=scaling,
            window=self.window_of(layer),
        )

    def biases(self) -> Biases:
        """Return which linears of a layer have a bias."""
        return Biases()

    def scales(self) -> ModelScales:
        """Return the constant multipliers of embeddings, residuals and logits."""
        return ModelScales()

    def norm(self, size: int | None = None) -> nn.Module:
        """Return the family's norm over `size` elements; None: over hidden_size."""
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowedConfig(DecoderConfig):
    """Configuration of families in which some or all layers have a sliding window."""

    sliding_window: Positions | None = None
    layer_types: tuple[str, ...] = ()  # kind of each layer; (): `is_windowed` decides

    def problems(self) -> Iterator[str]:
        """Yield contradictions: inherited ones, and inconsistent `layer_types`."""
        yield from DecoderConfig.problems(self)
        kinds, count = self.layer_types, self.num_hidden_layers
        kind_problems = list(layer_kinds.problems(kinds, (FULL, WINDOWED), count))
        yield from kind_problems
        if not kind_problems and WINDOWED in kinds and self.window is None:
            yield f"layer_types: {WINDOWED} without a sliding_window"

    @property
    def window(self) -> int | None:
        """Return the sliding window in tokens, the row's own included."""
        return self.sliding_window

    def is_windowed(self, layer: int) -> bool:
        """Return whether `layer` has the window, if config.json has no `layer_types`."""
        return True

    def windowed(self, layer: int) -> bool:
        """Return whether `layer` has the sliding window."""
        if self.layer_types:
            return self.layer_types[layer] == WINDOWED
        return self.window is not None and self.is_windowed(layer)

    def window_of(self, layer: int) -> int | None:
        """Return the window of `layer` in tokens.

        It is None without a window, or if it covers the whole context.
        """
        window = self.window if self.windowed(layer) else None
        return window if window and window < self.context else None


class Attention(nn.Module):
    def __init__(self, cfg: Any, layer: int) -> None:
        shape, biases = cfg.attention_shape(layer), cfg.biases()
        d, e, h, g = cfg.hidden_size, shape.head_dim, shape.heads, shape.kv_heads
        self.shape = shape
        self.qkv_proj = nn.Linear(d, (h + 2 * g) * e, bias=biases.qkv)
        self.o_proj = nn.Linear(h * e, d, bias=biases.out)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        return self.o_proj(attention(self.qkv_proj(x), batch, self.shape))


class ClippedAttention(Attention):
    """Attention that clips q, k and v to [-clip, clip]."""

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        self.clip = cfg.clip()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = self.qkv_proj(x)
        if self.clip is not None:
            qkv = clipped(qkv, self.clip)
        return self.o_proj(attention(qkv, batch, self.shape))


class HeadNormAttention(Attention):
    """Attention with an RMSNorm of each query and key head (QK norm), if its shape has norms."""

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        normed, e = self.shape.qk_norm_eps is not None, self.shape.head_dim
        self.q_norm = cfg.norm(e) if normed else None
        self.k_norm = cfg.norm(e) if normed else None

    def attended(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute the heads' results: x [n, d] -> [n, h * e]."""
        norms = None
        if self.q_norm is not None and self.k_norm is not None:
            norms = (self.q_norm.factor(), self.k_norm.factor())
        return attention(self.qkv_proj(x), batch, self.shape, norms)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        return self.o_proj(self.attended(x, batch))


class ProjectionNormAttention(Attention):
    """Attention with one norm over all query heads and one over all key heads."""

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        self.q_norm = self.norm_of(cfg, self.shape.heads)
        self.k_norm = self.norm_of(cfg, self.shape.kv_heads)

    def norm_of(self, cfg: Any, heads: int) -> nn.Module | None:
        """Return the norm of x [n, heads * e]; None: the family has none."""
        norm: nn.Module = cfg.norm(heads * self.shape.head_dim)
        return norm

    def qkv(self, x: Tensor) -> Tensor:
        """Compute q, k, v with their norms: x [n, d] -> [n, (h + 2g) * e]."""
        return normed_qkv(self.qkv_proj(x), self.shape, self.q_norm, self.k_norm)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        return self.o_proj(attention(self.qkv(x), batch, self.shape))


def normed_qkv(
    qkv: Tensor, shape: AttentionShape, q_norm: nn.Module | None, k_norm: nn.Module | None
) -> Tensor:
    """Return qkv [n, (h + 2g) * e] with q and k normalized, if both norms exist."""
    if q_norm is None or k_norm is None:
        return qkv
    e, h, g = shape.head_dim, shape.heads, shape.kv_heads
    q, k, v = op.split(qkv, [h * e, (h + g) * e], axis=-1)
    return op.concat([q_norm(q), k_norm(k), v], dim=-1)


class _Residual(nn.Module):
    """Base of blocks: a layer's attention and feed-forward, and their residual additions."""

    attention: type[nn.Module] = Attention

    def __init__(self, cfg: Any, layer: int) -> None:
        self.scale = cfg.scales().residual
        self.self_attn = self.attention(cfg, layer)
        self.mlp = self.feed_forward(cfg, layer)

    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer."""
        return GatedMLP(cfg.hidden_size, cfg.intermediate_size, bias=cfg.biases().mlp)

    def added(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + scale * y, the residual addition."""
        return x + (y if self.scale == 1.0 else y * self.scale)


class Block(_Residual):
    """Pre-norm block: a norm before attention, and a norm before the feed-forward."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        super().__init__(cfg, layer)
        self.post_attention_layernorm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.added(x, self.self_attn(self.input_layernorm(x), batch))
        return self.added(x, self.mlp(self.post_attention_layernorm(x)))


class PostNormBlock(_Residual):
    """Norms after attention and feed-forward, before they are added."""

    def __init__(self, cfg: Any, layer: int) -> None:
        super().__init__(cfg, layer)
        self.post_attention_layernorm = cfg.norm()
        self.post_feedforward_layernorm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.added(x, self.post_attention_layernorm(self.self_attn(x, batch)))
        return self.added(x, self.post_feedforward_layernorm(self.mlp(x)))


class SandwichBlock(_Residual):
    """Block with norms before and after attention and feed-forward."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        super().__init__(cfg, layer)
        self.post_attention_layernorm = cfg.norm()
        self.pre_feedforward_layernorm = cfg.norm()
        self.post_feedforward_layernorm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        y = self.self_attn(self.input_layernorm(x), batch)
        x = self.added(x, self.post_attention_layernorm(y))
        y = self.mlp(self.pre_feedforward_layernorm(x))
        return self.added(x, self.post_feedforward_layernorm(y))


class ParallelBlock(_Residual):
    """Block with attention and feed-forward in parallel, after one norm."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        super().__init__(cfg, layer)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        z = self.input_layernorm(x)
        return self.added(self.added(x, self.self_attn(z, batch)), self.mlp(z))


class TwinNormBlock(_Residual):
    """Block with attention and feed-forward in parallel, each after its own norm."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        super().__init__(cfg, layer)
        self.post_attention_layernorm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        y = self.self_attn(self.input_layernorm(x), batch)
        return self.added(self.added(x, y), self.mlp(self.post_attention_layernorm(x)))


class Decoder(nn.Module):
    block: type[nn.Module] = Block

    def __init__(self, cfg: Any) -> None:
        self.scale = cfg.scales().embedding
        self.embed_tokens = Embedding(cfg.vocab_size, cfg.hidden_size)
        block = self.block_of(cfg)
        self.layers = nn.ModuleList([block(cfg, i) for i in range(cfg.num_hidden_layers)])
        self.norm = cfg.norm()

    def block_of(self, cfg: Any) -> type[nn.Module]:
        """Return the class of all layers."""
        return self.block

    def tokens(self, batch: Batch) -> Tensor:
        """Look up the batch's token embeddings, [n, d], times the embedding scale.

        The features of images, which have no scale, are in the place of some.
        """
        x: Tensor = self.embed_tokens(batch.tokens)
        return batch.with_images(x if self.scale == 1.0 else x * self.scale)

    def embedded(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        return self.tokens(batch)

    def states(self, batch: Batch) -> list[Tensor]:
        """Return the input of each layer, and the result of the last, all [n, d]."""
        states = [self.embedded(batch)]
        for i, block in enumerate(self.layers):
            states.append(batch.after_layer(block(states[-1], batch), i))
        return states

    def rows(self, batch: Batch) -> Tensor:
        """Return the results of the last layer, [n, d]."""
        return self.states(batch)[-1]

    def forward(self, batch: Batch) -> Tensor:
        """Return the normalized hidden states of the logit rows, [m, d]."""
        return self.norm(batch.at_logit_rows(self.rows(batch)))


class CausalLM(nn.Module):
    decoder: type[nn.Module] = Decoder
    head_bias: bool = False

    def __init__(self, cfg: Any) -> None:
        self.scales = cfg.scales()
        self.model = self.decoder(cfg)
        self.draft: Any = None  # what drafts tokens, see `drafts/`
        self.lm_head = (
            None
            if cfg.tie_word_embeddings
            else nn.Linear(cfg.hidden_size, cfg.vocab_size, bias=self.head_bias)
        )

    def hidden(self, batch: Batch) -> Tensor:
        """Return the normalized hidden states of the logit rows, [m, d]."""
        if self.draft is None:
            return self.model(batch)
        states = self.model.states(batch)
        appended = self.draft.append(self.model, states, batch)
        return self.model.norm(batch.at_logit_rows_after(states[-1], appended))

    def drafted(self, batch: Batch) -> Tensor:
        """Compute the draft block's logits float32 [m, vocab] of the tokens after the batch's."""
        logits: Tensor = self.draft.drafted(self, batch)
        return logits

    def logits(self, x: Tensor) -> Tensor:
        """Compute logits float32 [m, vocab] from the result of `hidden`."""
        logits = self.lm_head(x) if self.lm_head else self.model.embed_tokens.logits(x)
        return _scaled(op.astype(logits, "float32"), self.scales)


def _scaled(logits: Tensor, scales: ModelScales) -> Tensor:
    """Return logits float32 [m, vocab], scaled and softcapped."""
    cap = scales.logit_cap
    if scales.logits != 1.0:
        logits = logits * scales.logits
    if cap is None:
        return logits
    return op.tanh(logits * (1 / cap)) * cap


TIED = tie("lm_head.weight", "model.embed_tokens.weight")
WEIGHTS = (
    concat("qkv_proj.weight", "q_proj.weight", "k_proj.weight", "v_proj.weight"),
    concat("qkv_proj.bias", "q_proj.bias", "k_proj.bias", "v_proj.bias"),
    concat("gate_up_proj.weight", "gate_proj.weight", "up_proj.weight"),
    concat("gate_up_proj.bias", "gate_proj.bias", "up_proj.bias"),
    TIED,
    drop("rotary_emb.inv_freq"),
)


def _pairs(cfg: DecoderConfig) -> Pairs:
    return Pairs(cfg.head_size, cfg.rope.rotary_dim(cfg.head_size))


# Weight rules of families that rotate neighbouring dimensions (interleaved RoPE).
PAIRED = tuple(
    reorder(f"{name}_proj.{kind}", _pairs) for name in "qk" for kind in ("weight", "bias")
)

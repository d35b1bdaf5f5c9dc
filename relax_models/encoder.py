"""Base classes of encoders: configuration, blocks, and the heads of embeddings and classes.

An encoder's row attends to all rows of its text, so one step has to hold the whole text, and
nothing is kept between steps: no KV cache, no prefixes. A family's file names its tables, its kind
of block and of head.

Axes: n rows, m result rows, d hidden, h heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import PoolingName, RaggedAttentionSpec

from .arch import WeightRule, concat, drop, rename
from .config import NOT_READ, Count, Epsilon, Positions, Size, VocabSize
from .layers.activations import NAMES, Activation, Name, activate
from .layers.dense import MLP, Embedding, Unquantized
from .layers.norms import LayerNorm
from .layers.ragged import attend, pooled, segments
from .output import DenseShape, Output
from .step import Batch

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Configuration fields that all encoder families share."""

    hidden_size: Size
    intermediate_size: Size
    num_hidden_layers: Count
    num_attention_heads: Count
    vocab_size: VocabSize
    max_position_embeddings: Positions = 512
    norm_eps: Epsilon = 1e-12
    hidden_act: Name = "gelu"
    output: Output = field(default=Output(), metadata=NOT_READ)
    bidirectional: ClassVar[bool] = True  # whether a step has to hold whole texts
    BEFORE: ClassVar[int] = 0  # rows of the position table before position 0
    BIASED: ClassVar[bool] = True  # whether linears have biases
    SPELLED: ClassVar[Mapping[str, str]] = {"norm_eps": "layer_norm_eps"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "position_embedding_type": ("absolute",),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attention_probs_dropout_prob",
        "hidden_dropout_prob",
        "classifier_dropout",
        "tie_word_embeddings",
        "num_labels",
        "output_past",  # of older versions of transformers, as in XLM-RoBERTa and BGE-M3
        "xla_device",
        "language",
        "sentence_transformers",  # activation of a cross-encoder, see compiler/encoders.py
        "sbert_ce_default_activation_function",
    )

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields, and with the layers after pooling."""
        if self.hidden_size % self.num_attention_heads:
            yield (
                f"hidden_size: {self.hidden_size} is not divisible by the "
                f"{self.num_attention_heads} of num_attention_heads"
            )
        if self.context < 1:
            yield f"max_position_embeddings: {self.max_position_embeddings} leaves no positions"

    @property
    def head_size(self) -> int:
        """Return the number of elements of a head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def context(self) -> int:
        """Return the tokens of the longest text."""
        return self.max_position_embeddings - self.BEFORE

    @property
    def longest(self) -> int:
        """Return the longest context, in tokens, that `at` accepts."""
        return self.context

    @property
    def biased_attention(self) -> bool:
        """Return whether the linears of attention have biases."""
        return self.BIASED

    def at(self, context: int) -> Self:
        """Return the configuration of a model that is compiled for `context` tokens."""
        return self

    def giving(self, output: Output) -> Self:
        """Return the configuration of a model with this output."""
        return replace(self, output=output)

    @property
    def embedding_size(self) -> int:
        """Return the number of elements of a text's vector."""
        return self.output.width(self.hidden_size)

    def attention_shape(self, layer: int = 0) -> RaggedAttentionSpec:
        """Return the static shape of a layer's attention."""
        h, e = self.num_attention_heads, self.head_size
        return RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=e**-0.5)

    def norm(self) -> nn.Module:
        """Return the family's norm."""
        return LayerNorm(self.hidden_size, self.norm_eps)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all layers of a step read: computed once, by `Encoder.shared`."""

    bias: Tensor | None = None  # of scores, float32 [h, 2 * reach + 1]
    # (cosine, sine), float32 [n, e / 2], by the kind of layer
    angles: Mapping[str, tuple[Tensor, Tensor]] = field(default_factory=dict)


class Attention(nn.Module):
    def __init__(self, cfg: Any, layer: int) -> None:
        self.spec = cfg.attention_shape(layer)
        d, inner = cfg.hidden_size, self.spec.heads * self.spec.head_dim
        self.qkv_proj = nn.Linear(d, self.spec.width, bias=cfg.biased_attention)
        self.o_proj = nn.Linear(inner, d, bias=cfg.biased_attention)

    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        return self.o_proj(attend(self.qkv_proj(x), batch, self.spec, shared.bias))


class PostNormBlock(nn.Module):
    """BERT's block: a norm after each residual addition."""

    attention: type[nn.Module] = Attention

    def __init__(self, cfg: Any, layer: int) -> None:
        self.attn = self.attention(cfg, layer)
        self.attn_norm = cfg.norm()
        self.mlp = self.feed_forward(cfg)
        self.mlp_norm = cfg.norm()

    def feed_forward(self, cfg: Any) -> nn.Module:
        """Return the feed-forward, which has no gate."""
        return MLP(cfg.hidden_size, cfg.intermediate_size, NAMES[cfg.hidden_act], cfg.BIASED)

    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.attn_norm(x + self.attn(x, batch, shared))
        y: Tensor = self.mlp_norm(x + self.mlp(x))
        return y


class Tables(nn.Module):
    """BERT's embeddings: the sum of the tables of tokens, positions and segments, normalized."""

    def __init__(self, cfg: Any) -> None:
        d, types = cfg.hidden_size, getattr(cfg, "type_vocab_size", 0)
        self.before, self.separator = cfg.BEFORE, cfg.output.separator if types > 1 else None
        self.word_embeddings = Embedding(cfg.vocab_size, d)
        self.position_embeddings = Embedding(cfg.max_position_embeddings, d)
        self.token_type_embeddings = Embedding(types, d) if types else None
        self.LayerNorm = cfg.norm()

    def forward(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        x = self.word_embeddings(batch.tokens)
        if self.token_type_embeddings is not None:
            x = x + self.token_type_embeddings(segments(batch, self.separator))
        positions = batch.positions + self.before if self.before else batch.positions
        y: Tensor = self.LayerNorm(x + self.position_embeddings(positions))
        return y


class Encoder(nn.Module):
    """Tables and layers: the batch -> [n, d]."""

    tables: type[nn.Module] = Tables
    block: type[nn.Module] = PostNormBlock

    def __init__(self, cfg: Any) -> None:
        self.embeddings = self.tables(cfg)
        self.layers = nn.ModuleList([self.block(cfg, i) for i in range(cfg.num_hidden_layers)])

    def shared(self, batch: Batch) -> Shared:
        """Return what the layers share."""
        return Shared()

    def forward(self, batch: Batch) -> Tensor:
        """Return the last layer's rows, [n, d]."""
        x, shared = self.embeddings(batch), self.shared(batch)
        for block in self.layers:
            x = block(x, batch, shared)
        return x


AnyActivation = Activation | Literal["identity", "tanh"]


class Dense(nn.Module):
    """Sentence-transformers' module Dense: x [m, inputs] -> [m, outputs]."""

    def __init__(self, shape: DenseShape) -> None:
        self.activation = shape.activation
        self.linear = Unquantized(shape.inputs, shape.outputs, bias=shape.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer."""
        return _activated(self.linear(x), self.activation)


def _activated(x: Tensor, name: AnyActivation) -> Tensor:
    if name == "identity":
        return x
    return op.tanh(x) if name == "tanh" else activate(x, name, gated=False)


class ClassHead(nn.Module):
    """Logits of classes: a linear with an activation over a pooled row, and a linear."""

    pooling: PoolingName = "cls"
    activation: AnyActivation = "tanh"

    def __init__(self, cfg: Any) -> None:
        d = cfg.hidden_size
        self.dense = Unquantized(d, d, bias=True)
        self.out = Unquantized(d, cfg.output.labels, bias=True)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute logits: x [n, d] -> [m, labels]."""
        y = _activated(self.dense(pooled(x, batch, self.pooling)), self.activation)
        return self.out(y)


class EncoderModel(nn.Module):
    """An encoder with its output: the interface of `Architecture.model`."""

    encoder: type[nn.Module] = Encoder
    head_kind: type[nn.Module] = ClassHead

    def __init__(self, cfg: Any) -> None:
        output = cfg.output
        self.lm_head = None
        self.modes = output.pooling
        self.model = self.encoder(cfg)
        self.head = self.head_kind(cfg) if output.labels else None
        self.dense = nn.ModuleList([Dense(layer) for layer in output.dense])

    def hidden(self, batch: Batch) -> Tensor:
        """Return the vectors of the result rows' texts, [m, embedding_size]."""
        x = self.model(batch)
        if self.head is not None:
            return self.head(x, batch)
        return output_of(x, batch, self.modes, self.dense)


def output_of(
    x: Tensor, batch: Batch, modes: tuple[PoolingName, ...], dense: nn.ModuleList
) -> Tensor:
    """Pool rows [n, d], and run the linears after pooling: [m, width]."""
    parts = [pooled(x, batch, mode) for mode in modes]
    y = parts[0] if len(parts) == 1 else op.concat(parts, dim=-1)
    for layer in dense:
        y = layer(y)
    return y


KINDS = ("weight", "bias")


def named(pairs: Mapping[str, str]) -> tuple[WeightRule, ...]:
    """Return rules that rename weight and bias of modules: parameter -> checkpoint tensor."""
    return tuple(
        rename(f"{param}.{kind}", f"{source}.{kind}")
        for param, source in pairs.items()
        for kind in KINDS
    )


def joined(param: str, *sources: str) -> tuple[WeightRule, ...]:
    """Return rules that concatenate weights and biases of modules."""
    return tuple(concat(f"{param}.{k}", *(f"{name}.{k}" for name in sources)) for k in KINDS)


def dropped(*names: str) -> tuple[WeightRule, ...]:
    """Return rules for modules that no output reads."""
    return tuple(drop(f"{name}.{kind}") for name in names for kind in KINDS)

"""T5 encoder-decoders (T5, T5 v1.1, FLAN-T5): no factor of scores, biases by distance.

Axes: n rows, m logit rows, d hidden, h heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, RaggedAttentionSpec

from ..arch import Architecture, WeightRule, concat, drop, rename, tie
from ..config import Count, Epsilon, Positions, Range, Size, VocabSize
from ..encoder_decoder import EncoderDecoder
from ..layers.activations import NAMES, Activation
from ..layers.dense import MLP, Embedding, GatedMLP, exact
from ..layers.norms import RMSNorm
from ..layers.ragged import attend
from ..layers.relative import biases
from ..step import Batch, WithSource, attention, cross_attention, keep_source

SIDES = ("encoder", "decoder")


@dataclass(frozen=True, slots=True, kw_only=True)
class T5Config:
    """Fields of T5's config.json that shape the computation."""

    hidden_size: Size = 512
    head_size: Size = 64
    intermediate_size: Size = 2048
    num_hidden_layers: Count = 6  # of the encoder
    num_decoder_layers: Count | None = None  # None: as many as the encoder has
    num_attention_heads: Count = 8
    vocab_size: VocabSize = 32128
    max_position_embeddings: Positions = 512  # tokens of a source, and of an output, in training
    relative_attention_num_buckets: Annotated[int, Range(4, 2**10)] = 32
    relative_attention_max_distance: Annotated[int, Range(4, 2**14)] = 128
    norm_eps: Epsilon = 1e-6
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    # Whether the LM head's input is multiplied by hidden_size ** -0.5; None: if it is tied.
    scale_decoder_outputs: bool | None = None
    reads_source: ClassVar[bool] = True
    ONE_TABLE: ClassVar[bool] = True  # encoder and decoder share the embeddings
    SPELLED: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "head_size": "d_kv",
        "intermediate_size": "d_ff",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "max_position_embeddings": "n_positions",
        "norm_eps": "layer_norm_epsilon",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"is_encoder_decoder": (True,)}
    IGNORED: ClassVar[tuple[str, ...]] = (
        "classifier_dropout",
        "dense_act_fn",  # parts of feed_forward_proj
        "is_gated_act",
        "dropout_rate",
        "initializer_factor",
        "output_past",
    )

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        gate, _, name = self.feed_forward_proj.rpartition("-")
        if gate not in ("", "gated") or name not in NAMES:
            known = " or ".join(NAMES)
            yield (
                f"feed_forward_proj: found {self.feed_forward_proj!r}, supported is {known}, or "
                "one of these after gated-"
            )
        if self.relative_attention_num_buckets % 4:
            yield (
                f"relative_attention_num_buckets: found {self.relative_attention_num_buckets}, "
                "supported are multiples of 4"
            )
        if self.relative_attention_max_distance <= self.relative_attention_num_buckets // 2:
            yield (
                "relative_attention_max_distance: found "
                f"{self.relative_attention_max_distance}, supported is more than half of "
                "relative_attention_num_buckets"
            )

    @property
    def decoder_layers(self) -> int:
        """Return the number of layers of the decoder."""
        return self.num_decoder_layers or self.num_hidden_layers

    @property
    def scaled(self) -> bool:
        """Return whether the LM head's input is scaled."""
        if self.scale_decoder_outputs is None:
            return self.tie_word_embeddings
        return self.scale_decoder_outputs

    @property
    def activation(self) -> Activation:
        """Return the activation of the feed-forward; "gated-gelu" means the tanh GELU."""
        name = self.feed_forward_proj
        return "gelu_tanh" if name == "gated-gelu" else NAMES[name.rpartition("-")[2]]

    @property
    def context(self) -> int:
        """Return the usual number of tokens of a source, and of an output."""
        return self.max_position_embeddings

    @property
    def longest(self) -> int:
        """Return the longest context in tokens: biases by distance have no end."""
        return 2**24

    @property
    def ends(self) -> str:
        """Return what happens at `longest`, as an error says it."""
        return "counted positions end"

    def at(self, context: int) -> T5Config:
        """Return the configuration for `context` tokens, which is the same for all."""
        return self

    @property
    def inner(self) -> int:
        """Return the width of all heads, h * e."""
        return self.num_attention_heads * self.head_size

    def encoder_shape(self) -> RaggedAttentionSpec:
        """Return the static shape of the encoder's attention."""
        h, e = self.num_attention_heads, self.head_size
        reach = self.relative_attention_max_distance
        return RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=1.0, reach=reach)

    def attention_shape(self, layer: int, *, cross: bool) -> AttentionShape:
        """Return the static shape of a decoder layer's attention, to itself or to the source."""
        return AttentionShape(
            cache=layer + (self.decoder_layers if cross else 0),
            heads=self.num_attention_heads,
            kv_heads=self.num_attention_heads,
            head_dim=self.head_size,
            scale=1.0,
            inv_freq=(),
            reach=None if cross else self.relative_attention_max_distance,
            cross=cross,
        )

    def norm(self) -> nn.Module:
        """Return the family's norm."""
        return RMSNorm(self.hidden_size, self.norm_eps)

    def feed_forward(self) -> nn.Module:
        """Return a layer's feed-forward."""
        kind = GatedMLP if self.feed_forward_proj.startswith("gated-") else MLP
        return kind(self.hidden_size, self.intermediate_size, self.activation)


class EncoderBlock(nn.Module):
    def __init__(self, cfg: T5Config) -> None:
        d = cfg.hidden_size
        self.spec = cfg.encoder_shape()
        self.attn_norm = cfg.norm()
        self.qkv_proj = nn.Linear(d, 3 * cfg.inner, bias=False)
        self.o_proj = nn.Linear(cfg.inner, d, bias=False)
        self.mlp_norm = cfg.norm()
        self.mlp = cfg.feed_forward()

    def forward(self, x: Tensor, batch: Batch, bias: Tensor) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        qkv = self.qkv_proj(self.attn_norm(x))
        x = x + self.o_proj(attend(qkv, batch, self.spec, bias))
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y


class DecoderBlock(nn.Module):
    def __init__(self, cfg: T5Config, layer: int) -> None:
        d = cfg.hidden_size
        self.shape = cfg.attention_shape(layer, cross=False)
        self.cross_shape = cfg.attention_shape(layer, cross=True)
        self.attn_norm = cfg.norm()
        self.qkv_proj = nn.Linear(d, 3 * cfg.inner, bias=False)
        self.o_proj = nn.Linear(cfg.inner, d, bias=False)
        self.cross_norm = cfg.norm()
        self.cross_q_proj = nn.Linear(d, cfg.inner, bias=False)
        self.cross_kv_proj = nn.Linear(d, 2 * cfg.inner, bias=False)
        self.cross_o_proj = nn.Linear(cfg.inner, d, bias=False)
        self.mlp_norm = cfg.norm()
        self.mlp = cfg.feed_forward()

    def keep(self, encoded: Tensor, batch: Batch, before: Tensor | None) -> Tensor:
        """Write keys and values of the encoder's rows [n, d]; see `keep_source`."""
        return keep_source(self.cross_kv_proj(encoded), batch, self.cross_shape, before)

    def forward(self, x: Tensor, batch: Batch, source: Batch, bias: Tensor) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        qkv = self.qkv_proj(self.attn_norm(x))
        x = x + self.o_proj(attention(qkv, batch, self.shape, bias=bias))
        q = self.cross_q_proj(self.cross_norm(x))
        x = x + self.cross_o_proj(cross_attention(q, source, self.cross_shape))
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y


class Encoder(nn.Module):
    def __init__(self, cfg: T5Config) -> None:
        self.reach = cfg.relative_attention_max_distance
        self.distances = exact((cfg.relative_attention_num_buckets, cfg.num_attention_heads))
        self.layers = nn.ModuleList([EncoderBlock(cfg) for _ in range(cfg.num_hidden_layers)])
        self.norm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the encoder: token embeddings [n, d] -> [n, d]."""
        bias = biases(self.distances, self.reach)
        for block in self.layers:
            x = block(x, batch, bias)
        y: Tensor = self.norm(x)
        return y


class Decoder(nn.Module):
    def __init__(self, cfg: T5Config) -> None:
        self.reach = cfg.relative_attention_max_distance
        self.distances = exact((cfg.relative_attention_num_buckets, cfg.num_attention_heads))
        self.layers = nn.ModuleList([DecoderBlock(cfg, i) for i in range(cfg.decoder_layers)])
        self.norm = cfg.norm()

    def forward(self, x: Tensor, batch: WithSource) -> Tensor:
        """Run the decoder: token embeddings [n, d] -> hidden states of the logit rows [m, d]."""
        bias = biases(self.distances, self.reach, causal=True)
        source = batch.over_source()
        for block in self.layers:
            x = block(x, batch, source, bias)
        y: Tensor = self.norm(batch.at_logit_rows(x))
        return y


class T5Model(EncoderDecoder):
    """The interface of `Architecture.model`."""

    def __init__(self, cfg: T5Config) -> None:
        d = cfg.hidden_size
        self.scale = d**-0.5 if cfg.scaled else 1.0
        self.shared = Embedding(cfg.vocab_size, d)
        self.encoder = Encoder(cfg)
        self.decoder = Decoder(cfg)
        self.lm_head = None if cfg.scaled else nn.Linear(d, cfg.vocab_size, bias=False)

    def logits(self, x: Tensor) -> Tensor:
        """Compute logits float32 [m, vocab] from the result of `hidden`."""
        if self.scale != 1.0:
            x = x * self.scale
        logits = self.lm_head(x) if self.lm_head else self.shared.logits(x)
        return op.astype(logits, "float32")


def _feed_forward(side: str, layer: int) -> tuple[WeightRule, ...]:
    """Return the weight rules of the feed-forward, whose norm has its number within a block."""
    param, source = f"{side}.layers.*", f"{side}.block.*.layer.{layer}"
    dense = f"{source}.DenseReluDense"
    return (
        rename(f"{param}.mlp_norm.weight", f"{source}.layer_norm.weight"),
        concat(f"{param}.mlp.gate_up_proj.weight", f"{dense}.wi_0.weight", f"{dense}.wi_1.weight"),
        rename(f"{param}.mlp.up_proj.weight", f"{dense}.wi.weight"),
        rename(f"{param}.mlp.down_proj.weight", f"{dense}.wo.weight"),
    )


_SELF, _CROSS = "layer.0.SelfAttention", "layer.1.EncDecAttention"
_BIAS = "relative_attention_bias.weight"
ARCH = Architecture(
    name="t5",
    config=T5Config,
    model=T5Model,
    weights=(
        tie("lm_head.weight", "shared.weight"),
        *(tie(f"{s}.embed_tokens.weight", "shared.weight", when="ONE_TABLE") for s in SIDES),
        concat("cross_kv_proj.weight", *(f"{_CROSS}.{name}.weight" for name in "kv")),
        concat("qkv_proj.weight", *(f"{_SELF}.{name}.weight" for name in "qkv")),
        rename("cross_norm.weight", "layer.1.layer_norm.weight"),
        rename("cross_q_proj.weight", f"{_CROSS}.q.weight"),
        rename("cross_o_proj.weight", f"{_CROSS}.o.weight"),
        rename("attn_norm.weight", "layer.0.layer_norm.weight"),
        rename("o_proj.weight", f"{_SELF}.o.weight"),
        *_feed_forward("encoder", 1),
        *_feed_forward("decoder", 2),
        *(rename(f"{s}.norm.weight", f"{s}.final_layer_norm.weight") for s in SIDES),
        *(rename(f"{s}.distances", f"{s}.block.0.{_SELF}.{_BIAS}") for s in SIDES),
        *(rename(f"{s}.layers.*", f"{s}.block.*") for s in SIDES),
        drop(f"{_CROSS}.{_BIAS}"),  # of the first checkpoints, whose code never read it
    ),
    aliases=("mt5",),
)

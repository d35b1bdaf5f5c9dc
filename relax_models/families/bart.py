"""BART encoder-decoders: learned positions, biases, a norm after each residual addition.

Axes: n rows, m logit rows, d hidden, h heads, e head dim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, RaggedAttentionSpec

from ..arch import Architecture, WeightRule, rename, tie
from ..config import Count, Positions, Size, VocabSize
from ..encoder import joined, named
from ..encoder_decoder import EncoderDecoder
from ..layers.activations import NAMES, Name
from ..layers.dense import MLP, Embedding, exact
from ..layers.norms import LayerNorm
from ..layers.ragged import attend
from ..step import Batch, WithSource, attention, cross_attention, keep_source

BEFORE = 2  # rows of a position table before position 0
SIDES = ("encoder", "decoder")


@dataclass(frozen=True, slots=True, kw_only=True)
class BartConfig:
    """Fields of BART's config.json that shape the computation."""

    hidden_size: Size
    vocab_size: VocabSize
    encoder_layers: Count = 12
    decoder_layers: Count = 12
    encoder_attention_heads: Count = 16
    decoder_attention_heads: Count = 16
    encoder_ffn_dim: Size = 4096
    decoder_ffn_dim: Size = 4096
    max_position_embeddings: Positions = 1024
    hidden_act: Name = "gelu"
    scale_embedding: bool = False
    tie_word_embeddings: bool = True
    reads_source: ClassVar[bool] = True
    ONE_TABLE: ClassVar[bool] = True  # encoder and decoder share the embeddings
    SPELLED: ClassVar[Mapping[str, str]] = {
        "hidden_size": "d_model",
        "hidden_act": "activation_function",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "is_encoder_decoder": (True,),
        "add_bias_logits": (False,),  # of the first version, whose other values are other models
        "add_final_layer_norm": (False,),
        "normalize_before": (False,),
        "normalize_embedding": (True,),
        "static_position_embeddings": (False,),
        "extra_pos_embeddings": (BEFORE,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "activation_dropout",
        "classif_dropout",
        "classifier_dropout",
        "decoder_layerdrop",
        "dropout",
        "encoder_layerdrop",
        "force_bos_token_to_be_generated",
        "init_std",
        "num_hidden_layers",
        "output_past",
        "save_step",
    )

    def problems(self) -> Iterator[str]:
        """Yield contradictions between fields."""
        for side in SIDES:
            heads = getattr(self, f"{side}_attention_heads")
            if self.hidden_size % heads:
                yield (
                    f"d_model: {self.hidden_size} is not divisible by the {heads} of "
                    f"{side}_attention_heads"
                )
        if not self.tie_word_embeddings:
            yield "tie_word_embeddings: found False, supported is True"

    @property
    def context(self) -> int:
        """Return the number of tokens of a source, and of an output."""
        return self.max_position_embeddings

    @property
    def longest(self) -> int:
        """Return the longest context in tokens."""
        return self.max_position_embeddings

    @property
    def ends(self) -> str:
        """Return what happens at `longest`, as an error says it."""
        return "positions end"

    def at(self, context: int) -> BartConfig:
        """Return the configuration for `context` tokens, which is the same for all."""
        return self

    def encoder_shape(self) -> RaggedAttentionSpec:
        """Return the static shape of the encoder's attention."""
        h = self.encoder_attention_heads
        e = self.hidden_size // h
        return RaggedAttentionSpec(heads=h, kv_heads=h, head_dim=e, scale=e**-0.5)

    def attention_shape(self, layer: int, *, cross: bool) -> AttentionShape:
        """Return the static shape of a decoder layer's attention, to itself or to the source."""
        h = self.decoder_attention_heads
        e = self.hidden_size // h
        return AttentionShape(
            cache=layer + (self.decoder_layers if cross else 0),
            heads=h,
            kv_heads=h,
            head_dim=e,
            scale=e**-0.5,
            inv_freq=(),
            cross=cross,
        )

    def norm(self) -> nn.Module:
        """Return the family's norm."""
        return LayerNorm(self.hidden_size, 1e-5)


class EncoderBlock(nn.Module):
    def __init__(self, cfg: BartConfig) -> None:
        d = cfg.hidden_size
        self.spec = cfg.encoder_shape()
        self.qkv_proj = nn.Linear(d, 3 * d, bias=True)
        self.o_proj = nn.Linear(d, d, bias=True)
        self.attn_norm = cfg.norm()
        self.mlp = MLP(d, cfg.encoder_ffn_dim, NAMES[cfg.hidden_act], bias=True)
        self.mlp_norm = cfg.norm()

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.attn_norm(x + self.o_proj(attend(self.qkv_proj(x), batch, self.spec)))
        y: Tensor = self.mlp_norm(x + self.mlp(x))
        return y


class DecoderBlock(nn.Module):
    def __init__(self, cfg: BartConfig, layer: int) -> None:
        d = cfg.hidden_size
        self.shape = cfg.attention_shape(layer, cross=False)
        self.cross_shape = cfg.attention_shape(layer, cross=True)
        self.qkv_proj = nn.Linear(d, 3 * d, bias=True)
        self.o_proj = nn.Linear(d, d, bias=True)
        self.attn_norm = cfg.norm()
        self.cross_q_proj = nn.Linear(d, d, bias=True)
        self.cross_kv_proj = nn.Linear(d, 2 * d, bias=True)
        self.cross_o_proj = nn.Linear(d, d, bias=True)
        self.cross_norm = cfg.norm()
        self.mlp = MLP(d, cfg.decoder_ffn_dim, NAMES[cfg.hidden_act], bias=True)
        self.mlp_norm = cfg.norm()

    def keep(self, encoded: Tensor, batch: Batch, before: Tensor | None) -> Tensor:
        """Write keys and values of the encoder's rows [n, d]; see `keep_source`."""
        return keep_source(self.cross_kv_proj(encoded), batch, self.cross_shape, before)

    def forward(self, x: Tensor, batch: Batch, source: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.attn_norm(x + self.o_proj(attention(self.qkv_proj(x), batch, self.shape)))
        attended = cross_attention(self.cross_q_proj(x), source, self.cross_shape)
        x = self.cross_norm(x + self.cross_o_proj(attended))
        y: Tensor = self.mlp_norm(x + self.mlp(x))
        return y


class _Side(nn.Module):
    """What encoder and decoder have alike: positions, and a norm of the embeddings."""

    def __init__(self, cfg: BartConfig) -> None:
        self.scale = cfg.hidden_size**0.5 if cfg.scale_embedding else 1.0
        self.embed_positions = Embedding(cfg.max_position_embeddings + BEFORE, cfg.hidden_size)
        self.layernorm_embedding = cfg.norm()

    def embedded(self, x: Tensor, batch: Batch) -> Tensor:
        """Return the input of the first layer from token embeddings, both [n, d]."""
        x = x if self.scale == 1.0 else x * self.scale
        y: Tensor = self.layernorm_embedding(x + self.embed_positions(batch.positions + BEFORE))
        return y


class Encoder(_Side):
    def __init__(self, cfg: BartConfig) -> None:
        super().__init__(cfg)
        self.layers = nn.ModuleList([EncoderBlock(cfg) for _ in range(cfg.encoder_layers)])

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the encoder: token embeddings [n, d] -> [n, d]."""
        x = self.embedded(x, batch)
        for block in self.layers:
            x = block(x, batch)
        return x


class Decoder(_Side):
    def __init__(self, cfg: BartConfig) -> None:
        super().__init__(cfg)
        self.layers = nn.ModuleList([DecoderBlock(cfg, i) for i in range(cfg.decoder_layers)])

    def forward(self, x: Tensor, batch: WithSource) -> Tensor:
        """Run the decoder: token embeddings [n, d] -> hidden states of the logit rows [m, d]."""
        x, source = self.embedded(x, batch), batch.over_source()
        for block in self.layers:
            x = block(x, batch, source)
        return batch.at_logit_rows(x)


class BartModel(EncoderDecoder):
    """The interface of `Architecture.model`."""

    def __init__(self, cfg: BartConfig) -> None:
        self.shared = Embedding(cfg.vocab_size, cfg.hidden_size)
        self.encoder = Encoder(cfg)
        self.decoder = Decoder(cfg)
        self.lm_head = None
        self.logits_bias = exact((1, cfg.vocab_size))

    def logits(self, x: Tensor) -> Tensor:
        """Compute logits float32 [m, vocab] from the result of `hidden`."""
        return op.astype(self.shared.logits(x), "float32") + op.astype(self.logits_bias, "float32")


def _layers(side: str) -> tuple[WeightRule, ...]:
    """Return the weight rules of a side's layers and tables."""
    param, source = f"{side}.layers.*", f"model.{side}.layers.*"
    names = {
        f"{param}.o_proj": f"{source}.self_attn.out_proj",
        f"{param}.attn_norm": f"{source}.self_attn_layer_norm",
        f"{param}.mlp.up_proj": f"{source}.fc1",
        f"{param}.mlp.down_proj": f"{source}.fc2",
        f"{param}.mlp_norm": f"{source}.final_layer_norm",
        f"{side}.layernorm_embedding": f"model.{side}.layernorm_embedding",
    }
    if side == "decoder":
        names |= {
            f"{param}.cross_q_proj": f"{source}.encoder_attn.q_proj",
            f"{param}.cross_o_proj": f"{source}.encoder_attn.out_proj",
            f"{param}.cross_norm": f"{source}.encoder_attn_layer_norm",
        }
    return (
        *named(names),
        *joined(f"{param}.qkv_proj", *(f"{source}.self_attn.{name}_proj" for name in "qkv")),
        *joined(f"{param}.cross_kv_proj", *(f"{source}.encoder_attn.{name}_proj" for name in "kv")),
        tie(f"model.{side}.embed_tokens.weight", "model.shared.weight", when="ONE_TABLE"),
        rename(f"{side}.embed_positions.weight", f"model.{side}.embed_positions.weight"),
    )


ARCH = Architecture(
    name="bart",
    config=BartConfig,
    model=BartModel,
    weights=(
        tie("lm_head.weight", "model.shared.weight"),
        *(rule for side in SIDES for rule in _layers(side)),
        rename("shared.weight", "model.shared.weight"),
        rename("logits_bias", "final_logits_bias"),
    ),
)

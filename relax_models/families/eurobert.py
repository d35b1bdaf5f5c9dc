"""EuroBERT encoders: Llama's layers, whose attention sees the whole text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import RaggedAttentionSpec

from .. import encoder, rotary_encoder
from ..arch import Architecture, concat, drop, rename
from ..config import NOT_READ, Count, Epsilon, Size
from ..encoder import EncoderConfig, Shared
from ..layers.activations import NAMES, Name, activate
from ..layers.dense import Embedding, GatedMLP, Unquantized
from ..layers.norms import RMSNorm
from ..layers.ragged import pooled
from ..rotary_encoder import RotaryConfig, SegmentCount
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class EuroBertConfig(RotaryConfig):
    """Fields of EuroBert's config.json that shape the computation."""

    num_key_value_heads: Count | None = None  # None: num_attention_heads
    head_dim: Size | None = None  # None: hidden_size / num_attention_heads
    hidden_act: Name = "silu"
    norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    mlp_bias: bool = False
    classifier_pooling: Literal["bos", "mean", "late"] = "late"
    type_vocab_size: SegmentCount = field(default=0, metadata=NOT_READ)  # there are no segments
    SPELLED: ClassVar[Mapping[str, str]] = {"norm_eps": "rms_norm_eps"}
    # A field of the first version, whose code came with the weights.
    ALIASES: ClassVar[Mapping[str, str]] = {"clf_pooling": "classifier_pooling"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"pretraining_tp": (1,)}
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "mask_token",
        "mask_token_id",
    )

    def problems(self) -> Iterator[str]:
        yield from RotaryConfig.problems(self)
        if self.num_attention_heads % self.kv_heads:
            yield (
                f"num_key_value_heads: {self.kv_heads} does not divide the "
                f"{self.num_attention_heads} of num_attention_heads"
            )

    @property
    def biased_attention(self) -> bool:
        return self.attention_bias

    @property
    def kv_heads(self) -> int:
        """Return the number of heads of keys and of values."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_size(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    def attention_shape(self, layer: int = 0) -> RaggedAttentionSpec:
        return replace(RotaryConfig.attention_shape(self, layer), kv_heads=self.kv_heads)

    def norm(self) -> nn.Module:
        return RMSNorm(self.hidden_size, self.norm_eps)


class Block(nn.Module):
    """Llama's block: a norm before attention and before the feed-forward."""

    def __init__(self, cfg: EuroBertConfig, layer: int) -> None:
        d, f = cfg.hidden_size, cfg.intermediate_size
        self.input_layernorm = cfg.norm()
        self.self_attn = rotary_encoder.Attention(cfg, layer)
        self.post_attention_layernorm = cfg.norm()
        self.mlp = GatedMLP(d, f, NAMES[cfg.hidden_act], cfg.mlp_bias)

    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.self_attn(self.input_layernorm(x), batch, shared)
        return x + self.mlp(self.post_attention_layernorm(x))


class Tables(nn.Module):
    """The table of tokens."""

    def __init__(self, cfg: EuroBertConfig) -> None:
        self.embed_tokens = Embedding(cfg.vocab_size, cfg.hidden_size)

    def forward(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        y: Tensor = self.embed_tokens(batch.tokens)
        return y


class Encoder(rotary_encoder.Encoder):
    tables = Tables
    block = Block

    def __init__(self, cfg: EuroBertConfig) -> None:
        super().__init__(cfg)
        self.norm = cfg.norm()

    def forward(self, batch: Batch) -> Tensor:
        y: Tensor = self.norm(super().forward(batch))
        return y


class ClassHead(nn.Module):
    """Logits of classes: a linear with GELU and a linear, over a pooled row or over all rows.

    With the pooling "late" the logits of a text are the mean of its rows' logits. The second linear
    is applied to the mean of the rows, which is the same.
    """

    def __init__(self, cfg: EuroBertConfig) -> None:
        d = cfg.hidden_size
        self.pooling = cfg.classifier_pooling
        self.dense = Unquantized(d, d, bias=True)
        self.out = Unquantized(d, cfg.output.labels, bias=True)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute logits: x [n, d] -> [m, labels]."""
        if self.pooling == "late":
            y = pooled(activate(self.dense(x), "gelu", gated=False), batch, "mean")
        else:
            rows = pooled(x, batch, "cls" if self.pooling == "bos" else "mean")
            y = activate(self.dense(rows), "gelu", gated=False)
        return self.out(y)


class EuroBertModel(encoder.EncoderModel):
    encoder = Encoder
    head_kind = ClassHead


ARCH = Architecture(
    name="eurobert",
    config=EuroBertConfig,
    model=EuroBertModel,
    weights=(
        *(
            concat(f"{param}.{kind}", *(f"{name}_proj.{kind}" for name in parts))
            for param, parts in (("qkv_proj", "qkv"), ("gate_up_proj", ("gate", "up")))
            for kind in ("weight", "bias")
        ),
        rename("model.embeddings.embed_tokens.weight", "model.embed_tokens.weight"),
        rename("head.dense.weight", "dense.weight"),
        rename("head.dense.bias", "dense.bias"),
        rename("head.out.weight", "classifier.weight"),
        rename("head.out.bias", "classifier.bias"),
        drop("lm_head.*"),
    ),
)

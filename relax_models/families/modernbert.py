"""ModernBERT encoders: RoPE, gated GELU, norms before layers, symmetric windows in most layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import RaggedAttentionSpec

from .. import encoder
from ..arch import Architecture, RopeConfig, drop, inv_freq
from ..config import Positions, Range
from ..decoder import FULL, WINDOWED
from ..encoder import EncoderConfig, Shared, named
from ..layers.activations import NAMES, Name, activate
from ..layers.dense import Embedding, GatedMLP, Unquantized
from ..layers.norms import LayerNorm
from ..layers.ragged import attend, pooled
from ..layers.rotated import angles, rotated
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernBertConfig(EncoderConfig):
    """Fields of ModernBert's config.json that shape the computation."""

    full_rope: RopeConfig
    local_rope: RopeConfig  # of layers with a window
    max_position_embeddings: Positions = 8192
    layer_types: tuple[str, ...] = ()  # kind of each layer; (): every Nth has no window
    global_attn_every_n_layers: Annotated[int, Range(1, 2**12)] = 3
    local_attention: Annotated[int, Range(2, 2**30)] = 128  # tokens of a window, both sides
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    norm_eps: Annotated[float, Range(1e-12, 0.1)] = 1e-5
    classifier_pooling: Literal["cls", "mean"] = "cls"
    classifier_bias: bool = False
    classifier_activation: Name = "gelu"
    SPELLED: ClassVar[Mapping[str, str]] = {"hidden_act": "hidden_activation"}
    IGNORED: ClassVar[tuple[str, ...]] = (
        *EncoderConfig.IGNORED,
        "initializer_cutoff_factor",
        "cls_token_id",
        "attention_dropout",
        "embedding_dropout",
        "mlp_dropout",
        "decoder_bias",
        "deterministic_flash_attn",
        "reference_compile",
        "repad_logits_with_grad",
        "sparse_prediction",
        "sparse_pred_ignore_index",
        "layer_norm_eps",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Split RoPE by the kind of layer, from one object for both or from separate fields."""
        given = dict(given)
        both = given.pop("rope_parameters", None) or {}
        for kind, old, prefix, theta in (
            (FULL, "global_rope_theta", "full_rope", 160000.0),
            (WINDOWED, "local_rope_theta", "local_rope", 10000.0),
        ):
            named = both.get(kind) if isinstance(both, dict) else None
            default = {"rope_type": "default", "rope_theta": given.pop(old, None) or theta}
            own = named if isinstance(named, dict) else {}
            given[f"{prefix}_parameters"] = {**default, **own}
        return given

    def problems(self) -> Iterator[str]:
        yield from EncoderConfig.problems(self)
        if self.layer_types and len(self.layer_types) != self.num_hidden_layers:
            yield (
                f"layer_types: {len(self.layer_types)} found for the {self.num_hidden_layers} of "
                "num_hidden_layers"
            )
        if unknown := sorted(set(self.layer_types) - {WINDOWED, FULL}):
            yield f"layer_types: found {', '.join(unknown)}, supported are {FULL} and {WINDOWED}"
        if self.head_size % 2:
            yield f"hidden_size: heads of {self.head_size} elements rotate in pairs"

    def kind_of(self, layer: int) -> str:
        """Return whether a layer has the window."""
        if self.layer_types:
            return self.layer_types[layer]
        return WINDOWED if layer % self.global_attn_every_n_layers else FULL

    def attention_shape(self, layer: int = 0) -> RaggedAttentionSpec:
        window = self.local_attention // 2 if self.kind_of(layer) == WINDOWED else None
        return replace(EncoderConfig.attention_shape(self, layer), window=window)

    def norm(self) -> nn.Module:
        return LayerNorm(self.hidden_size, self.norm_eps, bias=self.norm_bias)


class Attention(nn.Module):
    def __init__(self, cfg: ModernBertConfig, layer: int) -> None:
        self.spec, self.kind = cfg.attention_shape(layer), cfg.kind_of(layer)
        self.Wqkv = nn.Linear(cfg.hidden_size, self.spec.width, bias=cfg.attention_bias)
        self.Wo = nn.Linear(cfg.hidden_size, cfg.hidden_size, bias=cfg.attention_bias)

    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        qkv = rotated(self.Wqkv(x), shared.angles[self.kind], self.spec)
        return self.Wo(attend(qkv, batch, self.spec))


class Block(nn.Module):
    """Pre-norm block; the first layer's input is normalized already."""

    def __init__(self, cfg: ModernBertConfig, layer: int) -> None:
        d, f = cfg.hidden_size, cfg.intermediate_size
        self.attn_norm = cfg.norm() if layer else None
        self.attn = Attention(cfg, layer)
        self.mlp_norm = cfg.norm()
        self.mlp = GatedMLP(d, f, NAMES[cfg.hidden_act], cfg.mlp_bias)

    def forward(self, x: Tensor, batch: Batch, shared: Shared) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        y = x if self.attn_norm is None else self.attn_norm(x)
        x = x + self.attn(y, batch, shared)
        return x + self.mlp(self.mlp_norm(x))


class Tables(nn.Module):
    """The table of tokens, normalized."""

    def __init__(self, cfg: ModernBertConfig) -> None:
        self.tok_embeddings = Embedding(cfg.vocab_size, cfg.hidden_size)
        self.norm = cfg.norm()

    def forward(self, batch: Batch) -> Tensor:
        """Return the input of the first layer, [n, d]."""
        y: Tensor = self.norm(self.tok_embeddings(batch.tokens))
        return y


class Encoder(encoder.Encoder):
    tables = Tables
    block = Block

    def __init__(self, cfg: ModernBertConfig) -> None:
        super().__init__(cfg)
        self.final_norm = cfg.norm()
        used = {cfg.kind_of(layer) for layer in range(cfg.num_hidden_layers)}
        ropes = ((FULL, cfg.full_rope), (WINDOWED, cfg.local_rope))
        self.ropes = {
            kind: inv_freq(rope, cfg.head_size, cfg.max_position_embeddings)
            for kind, rope in ropes
            if kind in used
        }

    def shared(self, batch: Batch) -> Shared:
        """Return the angles of each kind of layer."""
        return Shared(
            angles={
                kind: angles(batch, [float(f) for f in table.inv_freq], table.attention_factor)
                for kind, table in self.ropes.items()
            }
        )

    def forward(self, batch: Batch) -> Tensor:
        y: Tensor = self.final_norm(super().forward(batch))
        return y


class ClassHead(nn.Module):
    """Logits of classes: a linear, its activation and a norm over a pooled row, and a linear."""

    def __init__(self, cfg: ModernBertConfig) -> None:
        d = cfg.hidden_size
        self.pooling, self.activation = cfg.classifier_pooling, NAMES[cfg.classifier_activation]
        self.dense = Unquantized(d, d, bias=cfg.classifier_bias)
        self.norm = cfg.norm()
        self.out = Unquantized(d, cfg.output.labels, bias=True)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute logits: x [n, d] -> [m, labels]."""
        y = activate(self.dense(pooled(x, batch, self.pooling)), self.activation, gated=False)
        return self.out(self.norm(y))


class ModernBertModel(encoder.EncoderModel):
    encoder = Encoder
    head_kind = ClassHead


ARCH = Architecture(
    name="modernbert",
    config=ModernBertConfig,
    model=ModernBertModel,
    weights=(
        *named(
            {
                "mlp.gate_up_proj": "mlp.Wi",
                "mlp.down_proj": "mlp.Wo",
                "head.out": "classifier",
            }
        ),
        drop("decoder.bias"),
        drop("decoder.weight"),
        drop("head.dense.weight"),
        drop("head.dense.bias"),
        drop("head.norm.weight"),
        drop("head.norm.bias"),
    ),
)

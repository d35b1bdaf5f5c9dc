"""Bloom decoders: ALiBi instead of positions, a norm of the embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend.nn import Tensor

from wherry.ops import AttentionShape

from .. import classic, decoder
from ..arch import Architecture, rename
from ..blocks.positions import alibi
from ..config import Positions
from ..layers.activations import Name
from ..lineages import falcon
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomConfig(classic.ClassicConfig):
    """Fields of Bloom's config.json that shape the computation; none gives the context length."""

    max_position_embeddings: Positions = 2048
    hidden_act: Name = "gelu_pytorch_tanh"
    tie_word_embeddings: bool = True
    # whether the norms' results are added to those of attention and of the feed-forward
    apply_residual_connection_post_layernorm: bool = False
    ROTATES: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = {
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "norm_eps": "layer_norm_epsilon",
        "max_position_embeddings": "seq_length",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "pretraining_tp": (1, 2, 4, 8),  # tensor parallelism of the training
        "slow_but_exact": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "attention_softmax_in_fp32",
        "bias_dropout_fusion",
        "masked_softmax_fusion",
        "offset_alibi",
        "skip_bias_add",
        "skip_bias_add_qkv",
        "n_inner",  # transformers ignores it: the width is always 4 * hidden_size
        "unk_token_id",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename fields that older checkpoints spell differently."""
        older = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
        older |= {"n_embed": "hidden_size"}
        return {older.get(name, name): value for name, value in given.items()}

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, slopes=alibi(self.num_attention_heads))


class Block(classic.Block):
    def __init__(self, cfg: BloomConfig, layer: int) -> None:
        super().__init__(cfg, layer)
        self.adds_normed = cfg.apply_residual_connection_post_layernorm

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        if not self.adds_normed:
            return super().forward(x, batch)
        x = self.input_layernorm(x)
        x = self.post_attention_layernorm(x + self.self_attn(x, batch))
        return x + self.mlp(x)


class Decoder(classic.Decoder):
    block = Block

    def __init__(self, cfg: BloomConfig) -> None:
        super().__init__(cfg)
        self.embed_norm = cfg.norm()

    def embedded(self, batch: Batch) -> Tensor:
        """Return the normalized token embeddings [n, d]."""
        x: Tensor = self.embed_norm(super().embedded(batch))
        return x


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="bloom",
    config=BloomConfig,
    model=CausalLM,
    weights=(
        *(
            rename(f"model.embed_norm.{kind}", f"transformer.word_embeddings_layernorm.{kind}")
            for kind in falcon.KINDS
        ),
        *falcon.WEIGHTS,
    ),
    base="transformer",
)

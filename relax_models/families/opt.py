"""OPT decoders (also Galactica): learned positions, ReLU; one size is post-norm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from .. import classic, decoder
from ..arch import Architecture, concat, rename
from ..blocks import positions
from ..config import Positions, Range, Size
from ..decoder import TIED, Biases
from ..layers.activations import Name
from ..layers.dense import Embedding
from ..step import Batch

KINDS = ("weight", "bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class OPTConfig(classic.ClassicConfig):
    """Fields of OPT's config.json that shape the computation."""

    max_position_embeddings: Positions = 2048
    intermediate_size: Annotated[int, Range(0, 2**20)] = 3072
    hidden_act: Name = "relu"
    tie_word_embeddings: bool = True
    do_layer_norm_before: bool = True
    enable_bias: bool = True
    word_embed_proj_dim: Size | None = None  # width of the token table; None: hidden_size
    ROTATES: ClassVar[bool] = False
    SPELLED: ClassVar[Mapping[str, str]] = {
        "intermediate_size": "ffn_dim",
        "hidden_act": "activation_function",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "layer_norm_elementwise_affine": (True,),
        "_remove_final_layer_norm": (False,),
        "learned_embeddings": (True,),
        "scale_embeddings": (False,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "dropout",
        "activation_dropout",
        "layerdrop",
        "init_std",
        "output_projection",
    )

    def problems(self) -> Iterator[str]:
        yield from classic.ClassicConfig.problems(self)
        if self.embedding_size != self.hidden_size and not self.tie_word_embeddings:
            yield "tie_word_embeddings: found False, supported with word_embed_proj_dim is True"

    @property
    def embedding_size(self) -> int:
        """Return the width of the token embedding."""
        return self.word_embed_proj_dim or self.hidden_size

    def biases(self) -> Biases:
        return Biases(self.enable_bias, self.enable_bias, self.enable_bias)


class PostNormBlock(classic.Block):
    """Post-norm block: the norm follows the residual addition."""

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = self.input_layernorm(self.added(x, self.self_attn(x, batch)))
        y: Tensor = self.post_attention_layernorm(self.added(x, self.mlp(x)))
        return y


class _Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Decoder(positions.PositionedDecoder):
    before = 2

    def __init__(self, cfg: OPTConfig) -> None:
        super().__init__(cfg)
        if not cfg.do_layer_norm_before:
            self.norm = _Identity()
        width, d = cfg.embedding_size, cfg.hidden_size
        self.project_in = self.project_out = None
        if width != d:
            self.embed_tokens = Embedding(cfg.vocab_size, width)
            self.project_in = nn.Linear(width, d, bias=False)
            self.project_out = nn.Linear(d, width, bias=False)

    def block_of(self, cfg: OPTConfig) -> type[nn.Module]:
        """Return the pre-norm or the post-norm block class."""
        return classic.Block if cfg.do_layer_norm_before else PostNormBlock

    def tokens(self, batch: Batch) -> Tensor:
        """Look up token embeddings, projected to [n, d]."""
        x: Tensor = super().tokens(batch)
        return x if self.project_in is None else self.project_in(x)

    def forward(self, batch: Batch) -> Tensor:
        """Return the hidden states of the logit rows, [m, width of the LM head]."""
        x: Tensor = super().forward(batch)
        return x if self.project_out is None else self.project_out(x)


class CausalLM(decoder.CausalLM):
    decoder = Decoder


NAMES: Mapping[str, str] = {
    "self_attn.o_proj": "self_attn.out_proj",
    "mlp.up_proj": "fc1",
    "mlp.down_proj": "fc2",
    "input_layernorm": "self_attn_layer_norm",
    "post_attention_layernorm": "final_layer_norm",
    "model.norm": "model.final_layer_norm",
}
ARCH = Architecture(
    name="opt",
    config=OPTConfig,
    model=CausalLM,
    weights=(
        *(concat(f"qkv_proj.{k}", f"q_proj.{k}", f"k_proj.{k}", f"v_proj.{k}") for k in KINDS),
        TIED,
        *(
            rename(f"{param}.{kind}", f"{source}.{kind}")
            for param, source in NAMES.items()
            for kind in KINDS
        ),
        rename("model.*", "model.decoder.*"),
    ),
)

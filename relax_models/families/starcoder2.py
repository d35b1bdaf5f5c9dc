"""StarCoder2 decoders: LayerNorm, biases, GELU without a gate; some sizes have sliding windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture, rename
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS, Biases
from ..layers.dense import MLP
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class Starcoder2Config(decoder.WindowedConfig):
    """Fields of Starcoder2's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 2}
    max_position_embeddings: Positions = 4096
    norm_epsilon: Epsilon = 1e-5
    use_bias: bool = True
    tie_word_embeddings: bool = True
    IGNORED: ClassVar[tuple[str, ...]] = ("residual_dropout", "embedding_dropout")
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("gelu_pytorch_tanh",),
        "norm_type": ("layer_norm",),
        "mlp_type": ("default",),
    }

    def biases(self) -> Biases:
        return Biases(self.use_bias, self.use_bias, self.use_bias)

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.norm_epsilon)


class Block(decoder.Block):
    def feed_forward(self, cfg: Starcoder2Config, layer: int) -> nn.Module:
        return MLP(cfg.hidden_size, cfg.intermediate_size, "gelu_tanh", cfg.use_bias)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


WEIGHTS_OF_MLP = tuple(
    rename(f"{param}.{kind}", f"{source}.{kind}")
    for param, source in (("up_proj", "c_fc"), ("down_proj", "c_proj"))
    for kind in ("weight", "bias")
)
ARCH = Architecture(
    name="starcoder2",
    config=Starcoder2Config,
    model=CausalLM,
    weights=(*WEIGHTS, *WEIGHTS_OF_MLP),
)

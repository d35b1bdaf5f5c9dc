"""StableLM decoders: LayerNorm, partial RoPE; some sizes have biases of q, k, v or QK norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tvm.relax.frontend import nn

from .. import decoder
from ..arch import Architecture
from ..blocks import head_norms
from ..config import Epsilon, Positions
from ..decoder import WEIGHTS, Biases
from ..layers.norms import LayerNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class StableLmConfig(decoder.DecoderConfig):
    """Fields of StableLm's config.json that shape the computation."""

    max_position_embeddings: Positions = 4096
    norm_eps: Epsilon = 1e-5
    use_qkv_bias: bool = False
    use_parallel_residual: bool = False
    qk_layernorm: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "num_key_value_heads": 32,
        "partial_rotary_factor": 0.25,
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
    }

    SPELLED: ClassVar[Mapping[str, str]] = {"norm_eps": "layer_norm_eps"}

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Rename RoPE's factor, which older checkpoints spell differently."""
        given = dict(given)
        older = given.pop("rope_pct", None)
        return given if older is None else given | {"partial_rotary_factor": older}

    def biases(self) -> Biases:
        return Biases(qkv=self.use_qkv_bias)

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.norm_eps)


class Block(decoder.Block):
    attention = head_norms.OwnNormAttention


class ParallelBlock(decoder.ParallelBlock):
    attention = head_norms.OwnNormAttention


class Decoder(decoder.Decoder):
    def block_of(self, cfg: StableLmConfig) -> type[nn.Module]:
        return ParallelBlock if cfg.use_parallel_residual else Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="stablelm", config=StableLmConfig, model=CausalLM, weights=(*head_norms.OWN, *WEIGHTS)
)

"""gpt-oss mixtures of experts: attention sinks, windows in every other layer, biases everywhere.

A router chooses the experts with the largest logits; their weights are the softmax of these logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, unpack
from ..blocks import attention_sinks, experts
from ..blocks.experts import DOWN, EXPERT, GATE_UP, Experts
from ..config import Count, Epsilon, Factor, Positions, Size
from ..decoder import WEIGHTS, Biases


@dataclass(frozen=True, slots=True, kw_only=True)
class GptOssConfig(decoder.WindowedConfig):
    """Fields of GptOss's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_theta": 150000.0}
    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_experts": "num_local_experts",
        "experts_per_token": "num_experts_per_tok",
    }
    # RoPE's fields contain it, too
    IGNORED: ClassVar[tuple[str, ...]] = ("initial_context_length",)
    head_dim: Size | None = 64
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    sliding_window: Positions | None = 128
    num_local_experts: Count = 128
    num_experts_per_tok: Count = 4
    swiglu_alpha: Factor = 1.702
    swiglu_limit: Factor = 7.0
    attention_bias: bool = True

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Accept MXFP4 weights, and set RoPE's default, YaRN."""
        quantized = given.get("quantization_config")
        if isinstance(quantized, dict) and quantized.get("quant_method") == "mxfp4":
            given = {k: v for k, v in given.items() if k != "quantization_config"}
        if given.get("rope_parameters") or given.get("rope_scaling"):
            return given
        yarn = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0}
        yarn |= {"truncate": False, "original_max_position_embeddings": 4096}
        return given | {"rope_scaling": yarn}

    def is_windowed(self, layer: int) -> bool:
        return layer % 2 == 0

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def experts_of(self, layer: int) -> Experts:
        routing = RouteSpec(
            experts=self.num_local_experts, top_k=self.num_experts_per_tok, normalized=True
        )
        return Experts(
            routing=routing,
            size=self.intermediate_size,
            gate="clamped",
            biases=True,
            alpha=float(self.swiglu_alpha),
            limit=float(self.swiglu_limit),
        )


class Block(experts.Block):
    attention = attention_sinks.Attention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


def _bias(weight: str) -> str:
    return weight.replace(".weight", ".bias")


# Names in GGUF files, which have a matrix and a bias per expert.
_EACH = (f"{EXPERT}.gate_proj.weight", f"{EXPERT}.up_proj.weight")
_DOWN = f"{EXPERT}.down_proj.weight"
ARCH = Architecture(
    name="gpt_oss",
    config=GptOssConfig,
    model=CausalLM,
    weights=(
        unpack(GATE_UP, "mlp.experts.gate_up_proj", interleaved=True, each=_EACH),
        unpack(
            _bias(GATE_UP),
            "mlp.experts.gate_up_proj_bias",
            interleaved=True,
            each=tuple(map(_bias, _EACH)),
        ),
        unpack(DOWN, "mlp.experts.down_proj", each=(_DOWN,)),
        unpack(_bias(DOWN), "mlp.experts.down_proj_bias", each=(_bias(_DOWN),)),
        *WEIGHTS,
    ),
)

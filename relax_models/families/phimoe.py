"""Phi-3.5-MoE: Mixtral with LayerNorm, biases, LongRoPE, and experts chosen by sparsemixer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn

from ..arch import Architecture
from ..blocks import experts
from ..blocks.experts import Experts
from ..config import Count, Range
from ..decoder import WEIGHTS, Biases
from ..layers.norms import LayerNorm
from ..lineages.mixtral import SPARSE_MOE, MixtralConfig

_SCALES = ("short_mscale", "long_mscale")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhimoeConfig(MixtralConfig):
    """Fields of Phimoe's config.json that shape the computation."""

    IGNORED: ClassVar[tuple[str, ...]] = ("input_jitter_noise",)  # affects training alone
    num_local_experts: Count = 16
    router_jitter_noise: Annotated[float, Range(0.0, 1.0)] = 0.01
    attention_bias: bool = False
    lm_head_bias: bool = False

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Read LongRoPE's factor of cosine and sine for short contexts from its own field."""
        for name in ("rope_parameters", "rope_scaling"):
            rope = given.get(name)
            if isinstance(rope, dict) and set(_SCALES) <= set(rope):
                kept = {k: v for k, v in rope.items() if k not in _SCALES}
                given = given | {name: kept | {"attention_factor": rope["short_mscale"]}}
        return given

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=self.attention_bias)

    def norm(self, size: int | None = None) -> nn.Module:
        return LayerNorm(size or self.hidden_size, self.rms_norm_eps)

    def experts_of(self, layer: int) -> Experts:
        spec = MixtralConfig.experts_of(self, layer)
        routing = replace(
            spec.routing, score="sparsemixer", normalized=False, jitter=self.router_jitter_noise
        )
        return replace(spec, routing=routing)


class CausalLM(experts.CausalLM):
    def __init__(self, cfg: PhimoeConfig) -> None:
        self.head_bias = cfg.lm_head_bias
        super().__init__(cfg)


ARCH = Architecture(
    name="phimoe", config=PhimoeConfig, model=CausalLM, weights=(*SPARSE_MOE, *WEIGHTS)
)

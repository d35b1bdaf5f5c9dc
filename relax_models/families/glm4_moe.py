"""GLM-4.5 mixtures of experts: half of a head rotates, and the first layers are dense.

Experts are chosen by the sigmoid of their logit plus a bias, among the best groups of them, as in
DeepSeek V3; the weights of their results do not contain the bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from wherry.ops import AttentionShape, RouteSpec

from .. import decoder
from ..arch import Architecture, spare_layers
from ..blocks import experts
from ..blocks.experts import STACKED, Experts
from ..config import Count, Epsilon, Positions, Range, Size
from ..decoder import WEIGHTS, Biases
from ..drafts import mtp

Few = Annotated[int, Range(0, 2**12)]
Factor = Annotated[float, Range(1e-6, 1e6)]


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class GroupedConfig:
    """Fields of families whose experts are in groups, chosen by a sigmoid and a bias."""

    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_local_experts": "n_routed_experts",
        "num_experts": "n_routed_experts",
        "num_mtp_layers": "num_nextn_predict_layers",
    }
    moe_intermediate_size: Size = 1408
    num_experts_per_tok: Count = 8
    n_shared_experts: Few = 0
    n_routed_experts: Count = 128
    routed_scaling_factor: Factor = 1.0
    n_group: Count = 1
    topk_group: Count = 1
    first_k_dense_replace: Few = 0
    norm_topk_prob: bool = False
    num_nextn_predict_layers: Few = 0  # blocks of multi-token prediction

    def problems(self) -> Iterator[str]:
        yield from super().problems()  # type: ignore[misc]
        if self.n_routed_experts % self.n_group or self.topk_group > self.n_group:
            yield (
                f"n_group: {self.topk_group} (topk_group) of {self.n_group} groups of "
                f"{self.n_routed_experts} experts (n_routed_experts)"
            )
        elif self.num_experts_per_tok > self.topk_group * self.n_routed_experts // self.n_group:
            yield f"num_experts_per_tok: {self.num_experts_per_tok} are more than the groups have"

    def sparse(self, layer: int) -> bool:
        """Return whether `layer` has experts."""
        return layer >= self.first_k_dense_replace

    def experts_of(self, layer: int) -> Experts | None:
        if not self.sparse(layer):
            return None
        routing = RouteSpec(
            experts=self.n_routed_experts,
            top_k=self.num_experts_per_tok,
            score="sigmoid",
            bias=True,
            groups=self.n_group,
            kept_groups=self.topk_group,
            group_top=min(2, self.n_routed_experts // self.n_group),
            normalized=self.norm_topk_prob,
            scale=float(self.routed_scaling_factor),
        )
        size = self.moe_intermediate_size
        return Experts(routing=routing, size=size, shared=size * self.n_shared_experts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm4MoeConfig(GroupedConfig, decoder.DecoderConfig):
    """Fields of Glm4Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    # the default hidden_size / num_attention_heads is not a whole number
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    n_shared_experts: Few = 1
    first_k_dense_replace: Few = 1
    norm_topk_prob: bool = True
    attention_bias: bool = False
    use_qk_norm: bool = False

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Set `partial_rotary_factor` to its default of 0.5 if it is absent."""
        rope = given.get("rope_parameters") or given.get("rope_scaling")
        said = isinstance(rope, dict) and "partial_rotary_factor" in rope
        return given if said else {"partial_rotary_factor": 0.5} | given

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias)

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        return replace(shape, qk_norm_eps=self.rms_norm_eps if self.use_qk_norm else None)


class Block(experts.Block):
    attention = decoder.HeadNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="glm4_moe",
    config=Glm4MoeConfig,
    model=CausalLM,
    weights=(*STACKED, *WEIGHTS, spare_layers("model.layers.*.*", "num_nextn_predict_layers")),
    drafts=mtp.after_layers(Block),
)

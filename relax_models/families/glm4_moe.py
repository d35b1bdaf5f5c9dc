"""GLM-4.5 mixtures of experts: half of a head rotates, and the first layers are dense.

Experts are chosen by the sigmoid of their logit plus a bias, among the best groups of them, as in
DeepSeek V3; the weights of their results do not contain the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, spare_layers
from ..blocks import qk_norm
from ..blocks.experts import STACKED
from ..blocks.grouped_experts import GroupedConfig
from ..config import CountOrZero, Epsilon, Positions, Size
from ..decoder import WEIGHTS, Biases
from ..drafts import mtp


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm4MoeConfig(GroupedConfig, decoder.DecoderConfig):
    """Fields of Glm4Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    # the default hidden_size / num_attention_heads is not a whole number
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 131072
    rms_norm_eps: Epsilon = 1e-5
    n_shared_experts: CountOrZero = 1
    first_k_dense_replace: CountOrZero = 1
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


ARCH = Architecture(
    name="glm4_moe",
    config=Glm4MoeConfig,
    model=qk_norm.SparseLM,
    weights=(*STACKED, *WEIGHTS, spare_layers("model.layers.*.*", "num_nextn_predict_layers")),
    drafts=mtp.after_layers(qk_norm.SparseBlock),
)

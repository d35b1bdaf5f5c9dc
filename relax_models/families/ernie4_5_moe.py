"""ERNIE 4.5 mixtures of experts: the dense model with experts in a range of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, concat, drop
from ..blocks import experts
from ..blocks.experts import STACKED, Experts
from ..config import Count, CountOrZero, Range, Size
from ..decoder import PAIRED, WEIGHTS
from ..drafts import mtp
from ..lineages.ernie4_5 import Ernie4_5Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Ernie4_5MoeConfig(Ernie4_5Config):
    """Fields of Ernie4.5Moe's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 4, "rope_theta": 500000.0}
    ALIASES: ClassVar[Mapping[str, str]] = {
        "num_experts": "moe_num_experts",
        "num_local_experts": "moe_num_experts",
        "num_experts_per_tok": "moe_k",
    }
    head_dim: Size | None = None
    moe_intermediate_size: Size = 1536
    moe_k: Count = 6
    moe_num_experts: Count = 64
    moe_num_shared_experts: CountOrZero = 2
    moe_layer_start_index: CountOrZero = 1
    # last layer with experts; -1: the last of the model
    moe_layer_end_index: Annotated[int, Range(-1, 2**12)] = -1
    moe_layer_interval: Count = 1
    moe_norm_min: Annotated[float, Range(1e-30, 1.0)] = 1e-12
    num_nextn_predict_layers: CountOrZero = 0  # blocks of multi-token prediction

    def problems(self) -> Iterator[str]:
        yield from Ernie4_5Config.problems(self)
        if self.use_bias and self.tie_word_embeddings:
            yield "use_bias: true, with tie_word_embeddings; supported is one of the two"

    def experts_of(self, layer: int) -> Experts | None:
        last = self.moe_layer_end_index
        last = self.num_hidden_layers - 1 if last == -1 else last
        inside = self.moe_layer_start_index <= layer <= last
        if not inside or (layer + 1) % self.moe_layer_interval:
            return None
        routing = RouteSpec(
            experts=self.moe_num_experts,
            top_k=self.moe_k,
            bias=True,
            normalized=True,
            floor=float(self.moe_norm_min),
        )
        shared = self.moe_intermediate_size * self.moe_num_shared_experts
        return Experts(
            routing=routing,
            size=self.moe_intermediate_size,
            shared=shared,
            shared_bias=self.use_bias,
            bias_axes=2,
        )


class CausalLM(experts.CausalLM):
    def __init__(self, cfg: Ernie4_5MoeConfig) -> None:
        self.head_bias = cfg.use_bias
        super().__init__(cfg)


# The block's layer is dense; it reads and keeps hidden states as they are before the last norm.
BLOCK = mtp.named(
    lambda cfg: decoder.Block(cfg, cfg.num_hidden_layers),
    lambda _cfg: {
        "layer.*": "model.mtp_block.0.*",
        "eh_proj.*": "model.mtp_linear_proj.0.*",
        "enorm.*": "model.mtp_emb_norm.0.*",
        "hnorm.*": "model.mtp_hidden_norm.0.*",
    },
    mtp.Wiring(reads_normed=False, own_norm=False),
)
ARCH = Architecture(
    name="ernie4_5_moe",
    config=Ernie4_5MoeConfig,
    model=CausalLM,
    weights=(
        concat("mlp.e_score_correction_bias", "mlp.moe_statics.e_score_correction_bias"),
        *STACKED,
        *WEIGHTS,
        *PAIRED,
        drop("model.mtp_*"),
    ),
    drafts=BLOCK,
)

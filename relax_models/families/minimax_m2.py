"""MiniMax M2 mixtures of experts: norms over all of q and of k, and a partial RoPE.

Experts are chosen by the sigmoid of their logit plus a bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from wherry.ops import RouteSpec

from .. import decoder
from ..arch import Architecture, rename
from ..blocks import experts
from ..blocks.experts import Experts
from ..config import Count, Positions, Size
from ..decoder import WEIGHTS
from ..lineages.mixtral import SPARSE_MOE


@dataclass(frozen=True, slots=True, kw_only=True)
class MiniMaxM2Config(decoder.DecoderConfig):
    """Fields of MiniMaxM2's config.json that shape the computation."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "rope_theta": 5000000.0}
    ALIASES: ClassVar[Mapping[str, str]] = {"num_experts": "num_local_experts"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "attn_type_list": (1,),  # one per layer: softmax attention
        "qk_norm_type": ("per_layer",),
        "scoring_func": ("sigmoid",),
        "shared_intermediate_size": (0,),
        "use_qk_norm": (True,),
        "use_routing_bias": (True,),
    }
    # Fields about training, and about layers of multi-token prediction, which are not published.
    IGNORED: ClassVar[tuple[str, ...]] = (
        "router_jitter_noise",
        "mlp_intermediate_size",
        "use_mtp",
        "num_mtp_modules",
        "mtp_transformer_layers",
    )
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 196608
    num_experts_per_tok: Count = 8
    num_local_experts: Count = 256

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Read the count of rotated dimensions as a fraction, unless there is one."""
        turning, e = given.get("rotary_dim"), given.get("head_dim", 128)
        if type(turning) is not int or type(e) is not int or not 0 < turning <= e:
            return given  # an unknown field, if it is there
        rest = {name: value for name, value in given.items() if name != "rotary_dim"}
        return {"partial_rotary_factor": turning / e} | rest

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        if self.num_experts_per_tok > self.num_local_experts:
            yield (
                f"num_experts_per_tok: {self.num_experts_per_tok} of the "
                f"{self.num_local_experts} of num_local_experts"
            )

    def experts_of(self, layer: int) -> Experts:
        routing = RouteSpec(
            experts=self.num_local_experts,
            top_k=self.num_experts_per_tok,
            score="sigmoid",
            bias=True,
            normalized=True,
        )
        return Experts(routing=routing, size=self.intermediate_size)


class Block(experts.Block):
    attention = decoder.ProjectionNormAttention


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="minimax_m2",
    config=MiniMaxM2Config,
    model=CausalLM,
    weights=(
        *SPARSE_MOE,
        rename("mlp.e_score_correction_bias", "block_sparse_moe.e_score_correction_bias"),
        *WEIGHTS,
    ),
)

"""Jamba: Mamba layers and some with attention without RoPE, and experts in some layers.

Source: transformers' `modeling_jamba.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from wherry.ops import MambaSpec, RouteSpec

from .. import decoder
from ..arch import Architecture, RopeConfig, rename
from ..blocks import experts
from ..blocks.experts import EACH, Experts
from ..blocks.mamba import MAMBA, Expand, Mamba, MambaShape, Rank, rank_of
from ..config import Count, Positions, Range, Size
from ..decoder import WEIGHTS
from ..step import Batch

Offset = Annotated[int, Range(0, 2**12)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JambaConfig(decoder.DecoderConfig):
    """Fields of Jamba's config.json that shape the computation."""

    max_position_embeddings: Positions = 262144
    attn_layer_period: Count = 8  # in layer `attn_layer_offset` and every Nth after it
    attn_layer_offset: Offset = 4
    expert_layer_period: Count = 2
    expert_layer_offset: Offset = 1
    num_experts: Count = 16  # 1: no layer has experts
    num_experts_per_tok: Count = 2
    mamba_d_state: Size = 16
    mamba_d_conv: Count = 4
    mamba_expand: Expand = 2
    mamba_dt_rank: Rank = "auto"
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    ALIASES: ClassVar[Mapping[str, str]] = {"num_local_experts": "num_experts"}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mamba_inner_layernorms": (True,),
        "sliding_window": (),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "calc_logits_for_entire_prompt",
        "n_ctx",
        "num_logits_to_keep",
        "use_associative_scan",
        "use_mamba_kernels",
        "use_mambapy",
    )

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        if problem := self.mamba().problem():
            yield f"mamba_d_conv: {problem}"
        for kind in ("attn", "expert"):
            period, offset = (getattr(self, f"{kind}_layer_{n}") for n in ("period", "offset"))
            if offset >= period:
                yield f"{kind}_layer_offset: {offset} is not below {kind}_layer_period, {period}"
        if self.num_experts_per_tok > self.num_experts > 1:
            yield (
                f"num_experts_per_tok: {self.num_experts_per_tok} found, there are "
                f"{self.num_experts} (num_experts)"
            )

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others are Mamba layers."""
        return layer % self.attn_layer_period == self.attn_layer_offset

    def rope_of(self, layer: int) -> RopeConfig | None:
        return None

    def experts_of(self, layer: int) -> Experts | None:
        if self.num_experts == 1 or layer % self.expert_layer_period != self.expert_layer_offset:
            return None
        routing = RouteSpec(experts=self.num_experts, top_k=self.num_experts_per_tok)
        return Experts(routing=routing, size=self.intermediate_size)

    def mamba(self) -> MambaShape:
        """Return the static shape of a Mamba layer."""
        channels = int(self.mamba_expand * self.hidden_size)
        return MambaShape(
            spec=MambaSpec(channels=channels, state_dim=self.mamba_d_state),
            hidden_size=self.hidden_size,
            rank=rank_of(self.mamba_dt_rank, self.hidden_size),
            taps=self.mamba_d_conv,
            conv_bias=self.mamba_conv_bias,
            bias=self.mamba_proj_bias,
            norm_eps=self.rms_norm_eps,
        )


class Block(nn.Module):
    """Pre-norm block with attention or a Mamba layer, and a feed-forward that may be sparse."""

    def __init__(self, cfg: JambaConfig, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        self.attends = cfg.attends(layer)
        if self.attends:
            self.self_attn = decoder.Attention(cfg, layer)
        else:
            self.mamba = Mamba(cfg.mamba())
        self.post_attention_layernorm = cfg.norm()
        self.mlp = experts.feed_forward(cfg, layer)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        mixer = self.self_attn if self.attends else self.mamba
        x = x + mixer(self.input_layernorm(x), batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="jamba",
    config=JambaConfig,
    model=CausalLM,
    weights=(
        *MAMBA,
        *EACH,
        *WEIGHTS,
        rename("model.norm.weight", "model.final_layernorm.weight"),
        rename("model.layers.*.mlp.*", "model.layers.*.feed_forward.*"),
        rename(
            "model.layers.*.post_attention_layernorm.weight",
            "model.layers.*.pre_ff_layernorm.weight",
        ),
    ),
)

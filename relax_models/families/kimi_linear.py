"""Kimi Linear: Kimi Delta Attention, and latent attention in some layers; DeepSeek V3's experts.

Kimi Delta Attention is the gated delta rule with a decay for each element of a key. Latent
attention has no RoPE. Source: transformers' `modeling_kimi_linear.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, GatedDeltaSpec
from wherry.ops.tags import RECURRENCE

from .. import decoder, layer_kinds
from ..arch import Architecture, concat, either, rename, reorder, stack
from ..blocks import experts, latent
from ..blocks.experts import DOWN, GATE_UP
from ..blocks.grouped_experts import GroupedConfig
from ..blocks.latent import LATENTS
from ..blocks.recurrent import GatedNorm, ShortConv, channel_decays
from ..config import Count, Epsilon, Factor, Positions, Size
from ..decoder import WEIGHTS
from ..layer_kinds import DENSE, FULL, LINEAR, SPARSE, feed_forward_problems
from ..layers.dense import Unquantized, exact
from ..step import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiLinearConfig(GroupedConfig, latent.LatentConfig):
    """Fields of Kimi Linear's config.json that shape the computation."""

    max_position_embeddings: Positions = 1048576
    rms_norm_eps: Epsilon = 1e-5
    moe_intermediate_size: Size = 1024
    n_shared_experts: Count = 1
    n_routed_experts: Count = 256
    routed_scaling_factor: Factor = 2.446
    norm_topk_prob: bool = True
    linear_head_dim: Size = 128
    linear_num_heads: Count = 32
    linear_conv_kernel_dim: Count = 4
    layer_types: tuple[str, ...]
    mlp_layer_types: tuple[str, ...]
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}
    ALIASES: ClassVar[Mapping[str, str]] = {
        **GroupedConfig.ALIASES,
        "model_max_length": "max_position_embeddings",
        "moe_renormalize": "norm_topk_prob",
        "num_expert_group": "n_group",
        "num_experts_per_token": "num_experts_per_tok",
        "num_shared_experts": "n_shared_experts",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "mla_use_nope": (True,),
        "moe_layer_freq": (1,),
        "moe_router_activation_func": ("sigmoid",),
        "use_grouped_topk": (True,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("head_dim", "qk_head_dim")

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of `linear_attn_config` as those of transformers 5, and all kinds."""
        config = layer_kinds.respelled(given)
        own = config.pop("linear_attn_config", None)
        count = config.get("num_hidden_layers")
        layers = range(count) if isinstance(count, int) else range(0)
        attending: Any = [i + 1 for i in layers if i and i % 4 == 0]
        if isinstance(own, Mapping):
            for name, older in _LINEAR.items():
                if older in own:
                    config.setdefault(name, own[older])
            attending = own.get("full_attn_layers", attending)
        if isinstance(attending, list):  # numbers of layers from 1
            config.setdefault(
                "layer_types", [FULL if i + 1 in attending else LINEAR for i in layers]
            )
        dense = config.get("first_k_dense_replace", 1)
        if isinstance(dense, int):
            kinds = [DENSE if i < dense else SPARSE for i in layers]
            config.setdefault("mlp_layer_types", kinds)
        return config

    def problems(self) -> Iterator[str]:
        yield from GroupedConfig.problems(self)
        count = self.num_hidden_layers
        yield from layer_kinds.problems(self.layer_types, (FULL, LINEAR), count)
        yield from feed_forward_problems(self.mlp_layer_types, count)
        if self.linear_conv_kernel_dim < 2:
            yield f"linear_conv_kernel_dim: {self.linear_conv_kernel_dim} found, minimum is 2"

    @property
    def paired(self) -> bool:
        return False

    @property
    def context(self) -> int:
        return self.max_position_embeddings

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        return replace(latent.LatentConfig.attention_shape(self, layer), inv_freq=())

    def sparse(self, layer: int) -> bool:
        return self.mlp_layer_types[layer] == SPARSE

    def delta(self) -> GatedDeltaSpec:
        """Return the static shape of Kimi Delta Attention."""
        return GatedDeltaSpec(
            heads=self.linear_num_heads,
            key_heads=self.linear_num_heads,
            key_dim=self.linear_head_dim,
            value_dim=self.linear_head_dim,
            channel_decay=True,
        )


_LINEAR = {
    "linear_head_dim": "head_dim",
    "linear_num_heads": "num_heads",
    "linear_conv_kernel_dim": "short_conv_kernel_size",
}


class DeltaAttention(nn.Module):
    """Kimi Delta Attention, with a convolution of q, k and v before it.

    The projections of the decays and of beta, which decide how much of the state is kept over
    thousands of rows, stay float32 in every scheme, as do the convolution, A_log and dt_bias.
    """

    def __init__(self, cfg: KimiLinearConfig) -> None:
        self.spec = cfg.delta()
        d, e, width = cfg.hidden_size, cfg.linear_head_dim, self.spec.width
        heads = self.spec.heads
        self.qkv_proj = nn.Linear(d, width, bias=False)
        self.conv1d = ShortConv(width, cfg.linear_conv_kernel_dim)
        self.f_a_proj = Unquantized(d, e, bias=False)
        self.f_b_proj = Unquantized(e, heads * e, bias=False)
        self.b_proj = Unquantized(d, heads, bias=False)
        self.A_log = exact((1, 1, heads, 1))
        self.dt_bias = exact((heads * e,))
        self.g_a_proj = nn.Linear(d, e, bias=False)
        self.g_b_proj = nn.Linear(e, heads * e, bias=False)
        self.o_norm = GatedNorm(e, cfg.rms_norm_eps)
        self.o_proj = nn.Linear(heads * e, d, bias=False)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        spec = self.spec
        qkv = self.conv1d(self.qkv_proj(x), batch)
        decays = channel_decays(self.f_b_proj(self.f_a_proj(x)), self.A_log, self.dt_bias)
        args = [qkv, self.b_proj(x), decays, batch.query_indptr]
        out = Tensor.placeholder([x.shape[0], spec.heads * spec.value_dim], x.dtype)
        mixed = op.extern(RECURRENCE, ["gated_delta", spec.to_json(), *args], out)
        gate = op.sigmoid(self.g_b_proj(self.g_a_proj(x)))
        return self.o_proj(self.o_norm.each(mixed) * gate)


class Block(nn.Module):
    """Pre-norm block with one of the two kinds of attention, and a feed-forward."""

    def __init__(self, cfg: KimiLinearConfig, layer: int) -> None:
        attends = cfg.layer_types[layer] == FULL
        self.input_layernorm = cfg.norm()
        self.self_attn = latent.Attention(cfg, layer) if attends else DeltaAttention(cfg)
        self.post_attention_layernorm = cfg.norm()
        self.mlp = experts.feed_forward(cfg, layer)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.self_attn(self.input_layernorm(x), batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


def _attending(cfg: KimiLinearConfig) -> list[int]:
    return [i for i, kind in enumerate(cfg.layer_types) if kind == FULL]


_SPARSE = "block_sparse_moe"
ARCH = Architecture(
    name="kimi_linear",
    config=KimiLinearConfig,
    model=CausalLM,
    weights=(
        concat("conv1d.weight", *(f"{name}_conv1d.weight" for name in "qkv")),
        stack(GATE_UP, *(f"{_SPARSE}.experts.{{}}.{name}.weight" for name in ("w1", "w3"))),
        stack(DOWN, f"{_SPARSE}.experts.{{}}.w2.weight"),
        # The other layers have a projection of this name, too.
        reorder("model.layers.*.self_attn.q_proj.weight", latent.queries, layers=_attending),
        *LATENTS,
        *WEIGHTS,
        # transformers writes the dense layers' feed-forward with the name of the others'.
        *(
            either(f"mlp.{name}_proj.weight", f"{_SPARSE}.{name}_proj.weight")
            for name in ("gate", "up", "down")
        ),
        rename("mlp.router.weight", f"{_SPARSE}.gate.weight"),
        rename("mlp.e_score_correction_bias", f"{_SPARSE}.gate.e_score_correction_bias"),
        rename("model.layers.*.mlp.shared_experts.*", f"model.layers.*.{_SPARSE}.shared_experts.*"),
    ),
)

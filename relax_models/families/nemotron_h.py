"""Nemotron-H and Nemotron 3: each layer is a Mamba-2 layer, attention, a feed-forward, or experts.

Feed-forwards are squared ReLUs without a gate; attention has no RoPE. Experts may work in a latent
space that is narrower than the hidden states. Source: transformers' `modeling_nemotron_h.py`; the
steps are clamped to `time_step_limit`, as NVIDIA's own code does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor

from .. import decoder, layer_kinds
from ..arch import Architecture, RopeConfig, concat, drop, rename, stack
from ..blocks.experts import Chosen, ExpertLinear, Experts, route
from ..blocks.grouped_experts import GroupedConfig
from ..blocks.mamba2 import BACKBONE, MAMBA2, Mamba2, Mamba2Config
from ..config import Count, CountOrZero, Epsilon, Positions, Size
from ..decoder import TIED, Biases
from ..drafts import mtp
from ..layer_kinds import FULL, LINEAR
from ..layers.activations import activate
from ..layers.dense import MLP, Unquantized, exact
from ..step import Batch

DENSE, MOE = "mlp", "moe"
# Lists of kinds of layers -> older fields, which have a letter for each layer.
PATTERNS = {
    "layer_types": "hybrid_override_pattern",
    "mtp_layer_types": "mtp_hybrid_override_pattern",
}
_LETTERS = {"M": LINEAR, "*": FULL, "-": DENSE, "E": MOE}


@dataclass(frozen=True, slots=True, kw_only=True)
class NemotronHConfig(Mamba2Config, GroupedConfig, decoder.DecoderConfig):
    """Fields of Nemotron-H's config.json that shape the computation."""

    layer_types: tuple[str, ...]  # kind of each layer
    intermediate_size: Size = 21504
    head_dim: Size | None = 128
    max_position_embeddings: Positions = 4096
    rms_norm_eps: Epsilon = 1e-5
    attention_bias: bool = False
    mlp_bias: bool = False
    mamba_d_head: Size = 64
    mamba_n_groups: Count = 8
    mamba_d_state: Size = 128
    moe_intermediate_size: Size = 7688
    moe_shared_expert_intermediate_size: Size = 7688
    moe_latent_size: Size | None = None  # width of the experts' inputs; None: hidden_size
    num_experts_per_tok: Count = 2
    n_routed_experts: Count = 8
    n_shared_experts: CountOrZero = 1
    norm_topk_prob: bool = True
    mtp_layer_types: tuple[str, ...] = (FULL, MOE)  # of a block of multi-token prediction
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8}
    SPELLED: ClassVar[Mapping[str, str]] = {
        "rms_norm_eps": "layer_norm_epsilon",
        "mamba_n_heads": "mamba_num_heads",
        "mamba_d_head": "mamba_head_dim",
        "mamba_n_groups": "n_groups",
        "mamba_d_state": "ssm_state_size",
        "mamba_d_conv": "conv_kernel",
        "mamba_expand": "expand",  # without effect: the heads give the width
        "mamba_conv_bias": "use_conv_bias",
        "mamba_proj_bias": "use_bias",
    }
    ALIASES: ClassVar[Mapping[str, str]] = {
        **GroupedConfig.ALIASES,
        "layers_block_type": "layer_types",
        "mtp_layers_block_type": "mtp_layer_types",
        "attention_head_dim": "head_dim",
        "norm_eps": "layer_norm_epsilon",
        "rms_norm_eps": "layer_norm_epsilon",
        "mamba_n_groups": "n_groups",
        "mamba_d_conv": "conv_kernel",
        "mamba_expand": "expand",
        "mamba_conv_bias": "use_conv_bias",
        "mamba_dt_limit": "time_step_limit",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "mlp_hidden_act": ("relu2",),
        "mamba_hidden_act": ("silu",),
        "mamba_proj_bias": (False,),
        "sliding_window": (),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "chunk_size",
        "mamba_chunk_size",
        "mamba_dt_init_floor",
        "mamba_dt_max",
        "mamba_dt_min",
        "mamba_ssm_cache_dtype",
        "moe_shared_expert_overlap",
        "num_logits_to_keep",
        "rescale_prenorm_residual",
        "residual_in_fp32",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_rank",
        "use_mamba_kernels",
    )

    @staticmethod
    def prepared(given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with `layer_types` and `num_hidden_layers`, in whichever form given."""
        config = dict(given)
        for kinds, older in PATTERNS.items():
            pattern = config.pop(older, None)
            if isinstance(pattern, str) and pattern:
                config.setdefault(kinds, [_LETTERS.get(c, c) for c in pattern])
            config = layer_kinds.respelled(config, kinds)
        own = config.get("layer_types")
        return {"num_hidden_layers": len(own), **config} if isinstance(own, list) else config

    def problems(self) -> Iterator[str]:
        yield from GroupedConfig.problems(self)
        yield from self.mamba_problems()
        kinds = (FULL, LINEAR, DENSE, MOE)
        yield from layer_kinds.problems(self.layer_types, kinds, self.num_hidden_layers)
        if self.n_shared_experts != 1:
            yield f"n_shared_experts: found {self.n_shared_experts}, supported is 1"

    @property
    def mamba_inner(self) -> int:
        return self.mamba_n_heads * self.mamba_d_head

    def rope_of(self, layer: int) -> RopeConfig | None:
        return None

    def biases(self) -> Biases:
        return Biases(self.attention_bias, self.attention_bias, self.mlp_bias)

    def sparse(self, layer: int) -> bool:
        return self.layer_types[layer] == MOE

    def experts_of(self, layer: int) -> Experts | None:
        spec = GroupedConfig.experts_of(self, layer)
        return spec and replace(spec, shared=self.moe_shared_expert_intermediate_size)


class ExpertBank(nn.Module):
    """The feed-forwards of all experts, squared ReLUs without a gate."""

    def __init__(self, width: int, spec: Experts) -> None:
        count = spec.routing.experts
        self.up_proj = ExpertLinear(count, width, spec.size)
        self.down_proj = ExpertLinear(count, spec.size, width)

    def forward(self, x: Tensor, chosen: Chosen) -> Tensor:
        """Compute the feed-forward: x [n, w] -> [n, w]."""
        h = activate(self.up_proj(x, chosen), "relu2", gated=False)
        return self.down_proj(h, chosen, combined=True)


class SparseMLP(nn.Module):
    """A router, its experts, which may work in a latent space, and the shared expert."""

    def __init__(self, cfg: NemotronHConfig, spec: Experts) -> None:
        d, latent = cfg.hidden_size, cfg.moe_latent_size
        count, bias = spec.routing.experts, cfg.mlp_bias
        self.routing = spec.routing
        self.router = Unquantized(d, count, bias=False)
        self.e_score_correction_bias = exact((count,))
        self.fc1_latent_proj = nn.Linear(d, latent, bias=bias) if latent else None
        self.fc2_latent_proj = nn.Linear(latent, d, bias=bias) if latent else None
        self.experts = ExpertBank(latent or d, spec)
        self.shared_experts = MLP(d, spec.shared, "relu2", bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        chosen = route(self.router(x), self.e_score_correction_bias, self.routing)
        y = x if self.fc1_latent_proj is None else self.fc1_latent_proj(x)
        y = self.experts(y, chosen)
        y = y if self.fc2_latent_proj is None else self.fc2_latent_proj(y)
        return y + self.shared_experts(x)


class Block(nn.Module):
    """Pre-norm block with one mixer."""

    def __init__(self, cfg: NemotronHConfig, layer: int) -> None:
        kind, spec = cfg.layer_types[layer], cfg.experts_of(layer)
        self.norm = cfg.norm()
        self.reads_others = kind in (FULL, LINEAR)  # rows before this one
        if kind == FULL:
            self.mixer = decoder.Attention(cfg, layer)
        elif kind == LINEAR:
            self.mixer = Mamba2(cfg.mamba2())
        elif spec is not None:
            self.mixer = SparseMLP(cfg, spec)
        else:
            self.mixer = MLP(cfg.hidden_size, cfg.intermediate_size, "relu2", cfg.mlp_bias)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        z = self.norm(x)
        return x + (self.mixer(z, batch) if self.reads_others else self.mixer(z))


class DraftLayers(nn.Module):
    """The layers of the block of multi-token prediction, which follow those of the model."""

    def __init__(self, cfg: NemotronHConfig) -> None:
        first, kinds = cfg.num_hidden_layers, cfg.mtp_layer_types
        longer = replace(
            cfg,
            num_hidden_layers=first + len(kinds),
            layer_types=(*cfg.layer_types, *kinds),
        )
        self.layers = nn.ModuleList([Block(longer, first + i) for i in range(len(kinds))])

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layers: x [n, d] -> [n, d]."""
        for layer in self.layers:
            x = layer(x, batch)
        return x


def lacks_block(cfg: NemotronHConfig) -> str | None:
    """Return why a checkpoint has no block of multi-token prediction that can be used."""
    kinds = cfg.mtp_layer_types
    if cfg.num_nextn_predict_layers and (kinds[:1] != (FULL,) or {*kinds[1:]} - {DENSE, MOE}):
        return f"mtp_layers_block_type: {', '.join(kinds)} (usable is attention, then the others)"
    return mtp.nextn_missing(cfg)


def _draft_names(cfg: NemotronHConfig) -> dict[str, str]:
    return {
        "layer.layers.*": "mtp.layers.*",
        "norm.*": f"mtp.layers.{len(cfg.mtp_layer_types) - 1}.final_layernorm.*",
        "*": "mtp.layers.0.*",  # the linear and the norms before it
    }


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


_QKV = ("q_proj", "k_proj", "v_proj")
_EXPERT = "mixer.experts.{}"
ARCH = Architecture(
    name="nemotron_h",
    config=NemotronHConfig,
    model=CausalLM,
    weights=(
        *MAMBA2,
        *(concat(f"qkv_proj.{k}", *(f"{n}.{k}" for n in _QKV)) for k in ("weight", "bias")),
        stack("mixer.experts.up_proj.weight", f"{_EXPERT}.up_proj.weight"),
        stack("mixer.experts.down_proj.weight", f"{_EXPERT}.down_proj.weight"),
        TIED,
        drop("mtp.*"),
        rename("mixer.router.weight", "mixer.gate.weight"),
        rename("mixer.e_score_correction_bias", "mixer.gate.e_score_correction_bias"),
        *BACKBONE,
    ),
    drafts=mtp.named(DraftLayers, _draft_names, mtp.Wiring(keeps_normed=True), lacks_block),
)

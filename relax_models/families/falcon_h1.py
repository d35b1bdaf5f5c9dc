"""Falcon-H1: attention and a Mamba-2 layer side by side in each layer, with many multipliers.

Source: transformers' `modeling_falcon_h1.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape

from .. import decoder
from ..arch import Architecture, rename
from ..blocks.mamba2 import MAMBA2, Mamba2, Mamba2Config, Mamba2Shape, scaled
from ..config import Epsilon, Positions, Range, Size
from ..decoder import WEIGHTS, ModelScales
from ..lineages.llama import LlamaConfig
from ..step import Batch

Factor = Annotated[float, Range(1e-9, 1e9)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FalconH1Config(Mamba2Config, LlamaConfig):
    """Fields of Falcon-H1's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    rms_norm_eps: Epsilon = 1e-5
    mamba_d_ssm: Size | None = None  # elements of x of a row; None: mamba_expand * hidden_size
    mamba_rms_norm: bool = False  # whether the result of a Mamba-2 layer has a norm
    mamba_norm_before_gate: bool = True
    projectors_bias: bool = False
    embedding_multiplier: Factor = 1.0
    lm_head_multiplier: Factor = 1.0
    key_multiplier: Factor = 1.0
    attention_in_multiplier: Factor = 1.0
    attention_out_multiplier: Factor = 1.0
    ssm_in_multiplier: Factor = 1.0
    ssm_out_multiplier: Factor = 1.0
    ssm_multipliers: tuple[Factor, ...] = (1.0,) * 5  # of the gate, x, B, C and the steps
    mlp_multipliers: tuple[Factor, ...] = (1.0, 1.0)  # of the gate, and of the result
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"num_key_value_heads": 8, "mamba_d_ssm": 1024}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attn_layer_indices": (),
        "mamba_use_mlp": (True,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = (
        "mamba_chunk_size",
        "num_logits_to_keep",
        "use_mamba_kernels",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
    )

    def problems(self) -> Iterator[str]:
        yield from LlamaConfig.problems(self)
        yield from self.mamba_problems()
        for name, count in (("ssm_multipliers", 5), ("mlp_multipliers", 2)):
            if len(getattr(self, name)) != count:
                yield f"{name}: {len(getattr(self, name))} found, expected {count}"

    @property
    def mamba_inner(self) -> int:
        return self.mamba_d_ssm or int(self.mamba_expand * self.hidden_size)

    def mamba2(self) -> Mamba2Shape:
        return replace(
            Mamba2Config.mamba2(self),
            out_bias=self.projectors_bias,
            normed=self.mamba_rms_norm,
            gate_first=not self.mamba_norm_before_gate,
            input_factor=float(self.ssm_in_multiplier),
            factors=tuple(map(float, self.ssm_multipliers)),
        )

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = LlamaConfig.attention_shape(self, layer)
        return replace(shape, scale=shape.scale * self.key_multiplier)

    def scales(self) -> ModelScales:
        embedding, logits = float(self.embedding_multiplier), float(self.lm_head_multiplier)
        return ModelScales(embedding=embedding, logits=logits)


class MLP(nn.Module):
    """SwiGLU with a multiplier of the gate, before its activation, and one of the result."""

    def __init__(self, cfg: FalconH1Config) -> None:
        d, f = cfg.hidden_size, cfg.intermediate_size
        self.gate_factor, self.factor = map(float, cfg.mlp_multipliers)
        self.gate_up_proj = nn.Linear(d, 2 * f, bias=cfg.mlp_bias)
        self.down_proj = nn.Linear(f, d, bias=cfg.mlp_bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        gate, up = op.split(self.gate_up_proj(x), 2, axis=-1)
        return scaled(self.down_proj(op.silu(scaled(gate, self.gate_factor)) * up), self.factor)


class Block(nn.Module):
    """Pre-norm block with attention and a Mamba-2 layer in parallel, then the feed-forward."""

    def __init__(self, cfg: FalconH1Config, layer: int) -> None:
        self.attention_factors = (cfg.attention_in_multiplier, cfg.attention_out_multiplier)
        self.mamba_factor = float(cfg.ssm_out_multiplier)
        self.input_layernorm = cfg.norm()
        self.mamba = Mamba2(cfg.mamba2())
        self.self_attn = decoder.Attention(cfg, layer)
        self.pre_ff_layernorm = cfg.norm()
        self.feed_forward = MLP(cfg)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        before, after = map(float, self.attention_factors)
        z = self.input_layernorm(x)
        mixed = scaled(self.mamba(z, batch), self.mamba_factor)
        x = x + (mixed + scaled(self.self_attn(scaled(z, before), batch), after))
        return x + self.feed_forward(self.pre_ff_layernorm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="falcon_h1",
    config=FalconH1Config,
    model=CausalLM,
    weights=(
        *MAMBA2,
        *WEIGHTS,
        rename("model.norm.weight", "model.final_layernorm.weight"),
    ),
)

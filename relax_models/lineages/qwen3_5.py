"""Qwen3.5's decoder: Gated DeltaNets and gated attention, dense and with experts.

Source: transformers' `modeling_qwen3_5.py` and `modeling_qwen3_next.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import AttentionShape, GatedDeltaSpec

from .. import decoder, layer_kinds
from ..arch import rename, reorder
from ..blocks import experts
from ..blocks.recurrent import GatedDeltaNet
from ..blocks.rope_axes import RopeAxesConfig
from ..config import Count, Positions, Range, Size
from ..layer_kinds import FULL, LINEAR
from ..layers import dense
from ..layers.norms import RMSNorm
from ..step import Batch, attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3_5Config(RopeAxesConfig, decoder.DecoderConfig):
    """Fields of Qwen3.5's config.json that shape the computation."""

    head_dim: Size | None = 256
    max_position_embeddings: Positions = 32768
    attention_bias: bool = False
    linear_conv_kernel_dim: Count = 4
    linear_key_head_dim: Size = 128
    linear_value_head_dim: Size = 128
    linear_num_key_heads: Count = 16
    linear_num_value_heads: Count = 32
    full_attention_interval: Count = 4  # every Nth layer has attention, without `layer_types`
    layer_types: tuple[str, ...] = ()  # kind of each layer; (): `full_attention_interval` decides
    mtp_num_hidden_layers: Annotated[int, Range(0, 2**12)] = 0  # blocks of multi-token prediction
    mtp_use_dedicated_embeddings: bool = False
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partial_rotary_factor": 0.25}
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_act": ("silu",),
        "attn_output_gate": (True,),
        "mamba_ssm_dtype": ("float32",),
        "mlp_only_layers": (),
    }

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        yield from self.problems_of_axes()
        count = self.num_hidden_layers
        kind_problems = list(layer_kinds.problems(self.layer_types, (FULL, LINEAR), count))
        yield from kind_problems
        if not kind_problems and not any(map(self.attends, range(count))):
            yield f"layer_types: no layer of the {self.num_hidden_layers} is {FULL}"
        if self.linear_num_value_heads % self.linear_num_key_heads:
            yield (
                f"linear_num_key_heads: {self.linear_num_key_heads} does not divide "
                f"linear_num_value_heads, {self.linear_num_value_heads}"
            )
        if self.linear_conv_kernel_dim < 2:
            yield f"linear_conv_kernel_dim: {self.linear_conv_kernel_dim} found, minimum is 2"

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others have a recurrent state."""
        if layer >= self.num_hidden_layers:
            return True  # the layer of a block of multi-token prediction
        if self.layer_types:
            return self.layer_types[layer] == FULL
        return (layer + 1) % self.full_attention_interval == 0

    def attention_shape(self, layer: int = 0) -> AttentionShape:
        shape = decoder.DecoderConfig.attention_shape(self, layer)
        axes = self.axes(len(shape.inv_freq))
        return replace(shape, qk_norm_eps=self.rms_norm_eps, axes=axes)

    def delta(self) -> GatedDeltaSpec:
        """Return the static shape of the gated delta rule."""
        return GatedDeltaSpec(
            heads=self.linear_num_value_heads,
            key_heads=self.linear_num_key_heads,
            key_dim=self.linear_key_head_dim,
            value_dim=self.linear_value_head_dim,
        )

    def norm(self, size: int | None = None) -> nn.Module:
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps, offset=1.0)


class GatedAttention(nn.Module):
    """Attention with norms of q and k heads, whose output is multiplied by sigmoid(gate)."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.shape = cfg.attention_shape(layer)
        d, e, h, g = cfg.hidden_size, self.shape.head_dim, self.shape.heads, self.shape.kv_heads
        self.width = h * e
        self.qkv_proj = nn.Linear(d, 2 * (h + g) * e, bias=cfg.attention_bias)  # gate, q, k, v
        self.o_proj = nn.Linear(h * e, d, bias=cfg.attention_bias)
        self.q_norm, self.k_norm = cfg.norm(e), cfg.norm(e)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Compute attention: x [n, d] -> [n, d]."""
        gate, qkv = op.split(self.qkv_proj(x), [self.width], axis=-1)
        norms = (self.q_norm.factor(), self.k_norm.factor())
        return self.o_proj(attention(qkv, batch, self.shape, norms) * op.sigmoid(gate))


class Block(nn.Module):
    """Pre-norm block with attention or a Gated DeltaNet."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.input_layernorm = cfg.norm()
        self.attends = cfg.attends(layer)
        if self.attends:
            self.self_attn = GatedAttention(cfg, layer)
        else:
            taps, eps = cfg.linear_conv_kernel_dim, cfg.rms_norm_eps
            self.linear_attn = GatedDeltaNet(cfg.delta(), cfg.hidden_size, taps, eps)
        self.post_attention_layernorm = cfg.norm()
        self.mlp = self.feed_forward(cfg, layer)

    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer."""
        return dense.GatedMLP(cfg.hidden_size, cfg.intermediate_size)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        mixer = self.self_attn if self.attends else self.linear_attn
        x = x + mixer(self.input_layernorm(x), batch)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


@dataclass(frozen=True, slots=True)
class GatesFirst:
    """Row order of q_proj, which has q and gate of each head; the model has all gates, then q."""

    heads: int
    head_dim: int

    def source(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the checkpoint row of each row of the parameter."""
        half, within = np.divmod(rows, self.heads * self.head_dim)
        head, k = np.divmod(within, self.head_dim)
        result: NDArray[np.int64] = (2 * head + 1 - half) * self.head_dim + k
        return result


def lacks_block(cfg: Qwen3_5Config) -> str | None:
    """Return why a checkpoint has no block of multi-token prediction that can be used."""
    if not cfg.mtp_num_hidden_layers:
        return "mtp_num_hidden_layers: 0"
    return "mtp_use_dedicated_embeddings: true" if cfg.mtp_use_dedicated_embeddings else None


def _gates_first(cfg: Any) -> GatesFirst:
    return GatesFirst(cfg.num_attention_heads, cfg.head_size)


GATED = tuple(reorder(f"q_proj.{kind}", _gates_first) for kind in ("weight", "bias"))


class SparseBlock(Block):
    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        return experts.feed_forward(cfg, layer)


class SparseDecoder(Decoder):
    block = SparseBlock


class SparseLM(CausalLM):
    decoder = SparseDecoder


# Weight rules of a shared expert, which checkpoints name in the singular.
SHARED = rename("*.mlp.shared_experts.*", "*.mlp.shared_expert.*")

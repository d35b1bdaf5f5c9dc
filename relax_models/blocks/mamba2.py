"""Mamba-2's layer: a state space per head, with a convolution before it and a gated norm after it.

A model states the operation; `passes/recurrent_state.py` adds the state and the slots.

Axes: n rows, d hidden, h heads, p elements of a head, g groups, i = h * p inner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import Mamba2Spec
from wherry.ops.tags import PACK, RECURRENCE, tag

from .. import decoder
from ..arch import WeightRule, constant, either, rename, split
from ..config import Count, Range, Size
from ..layers import dense
from ..layers.activations import activate
from ..layers.dense import Unquantized, exact
from ..step import Batch
from .recurrent import ShortConv

Steps = Annotated[float, Range(0.0, math.inf)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Shape:
    """Static shape of a Mamba-2 layer."""

    spec: Mamba2Spec
    hidden_size: int
    taps: int  # of the convolution
    eps: float
    conv_bias: bool
    in_bias: bool
    out_bias: bool
    normed: bool = True  # whether the result has a norm
    gate_first: bool = True  # whether the gate multiplies what the norm reads, or its result
    input_factor: float = 1.0  # of the layer's input
    # of the gate, x, B, C and the steps
    factors: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0)


# no slots, because families combine it with their dense model's fields
@dataclass(frozen=True, kw_only=True)
class Mamba2Config:
    """Fields of config.json about Mamba-2 layers, with the names that most families have."""

    mamba_n_heads: Count = 128
    mamba_d_head: Size | Literal["auto"] = "auto"
    mamba_n_groups: Count = 1
    mamba_d_state: Size = 256
    mamba_d_conv: Count = 4
    mamba_expand: Annotated[float, Range(0.01, 64)] = 2
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    time_step_limit: tuple[Steps, ...] = ()

    def mamba_problems(self) -> Iterator[str]:
        """Yield contradictions between the fields about Mamba-2 layers."""
        heads, inner = self.mamba_n_heads, self.mamba_inner
        if inner != heads * self.mamba_head:
            yield (
                f"mamba_n_heads: {heads} of {self.mamba_head} elements found, "
                f"for the {inner} of a layer"
            )
        if heads % self.mamba_n_groups:
            yield f"mamba_n_groups: {self.mamba_n_groups} does not divide mamba_n_heads, {heads}"
        if self.mamba_d_conv < 2:
            yield f"mamba_d_conv: {self.mamba_d_conv} found, minimum is 2"
        limits = self.time_step_limit
        if limits and (len(limits) != 2 or limits[0] > limits[1] or limits[1] == 0):
            yield f"time_step_limit: found {list(limits)}, expected the least and the largest step"

    @property
    def mamba_inner(self) -> int:
        """Return the elements of x of a row."""
        return int(self.mamba_expand * self.hidden_size)  # type: ignore[attr-defined]

    @property
    def mamba_head(self) -> int:
        """Return the elements of a head."""
        own = self.mamba_d_head
        return own if isinstance(own, int) else self.mamba_inner // self.mamba_n_heads

    def mamba2(self) -> Mamba2Shape:
        """Return the static shape of a Mamba-2 layer."""
        least, most = self.time_step_limit or (0.0, math.inf)
        spec = Mamba2Spec(
            heads=self.mamba_n_heads,
            head_dim=self.mamba_head,
            groups=self.mamba_n_groups,
            state_dim=self.mamba_d_state,
            least_step=float(least),
            most_step=None if math.isinf(most) else float(most),
        )
        return Mamba2Shape(
            spec=spec,
            hidden_size=self.hidden_size,  # type: ignore[attr-defined]
            taps=self.mamba_d_conv,
            eps=self.rms_norm_eps,  # type: ignore[attr-defined]
            conv_bias=self.mamba_conv_bias,
            in_bias=self.mamba_proj_bias,
            out_bias=self.mamba_proj_bias,
        )


class GatedGroupNorm(nn.Module):
    """RMSNorm of each group of elements with a gate, by a weight for all: weight [i].

    The gate comes first, norm(x * silu(z)), or last, norm(x) * silu(z).
    """

    def __init__(self, shape: Mamba2Shape) -> None:
        size, groups = shape.spec.inner, shape.spec.groups
        self.groups, self.eps, self.gate_first = groups, shape.eps, shape.gate_first
        self.weight = nn.Parameter((size,))
        # The norm of a group multiplies by ones; one group alone has the weight.
        self.ones = nn.Parameter((size // groups,)) if groups > 1 else None

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """Normalize: x and z [n, i] -> [n, i]."""
        gate = activate(z, "silu", gated=False)
        return self._normed(x * gate) if self.gate_first else self._normed(x) * gate

    def _normed(self, x: Tensor) -> Tensor:
        if self.ones is None:
            return op.rms_norm(x, self.weight, -1, self.eps)
        n, width = x.shape
        each = op.reshape(x, (n * self.groups, int(width) // self.groups))
        normed = op.reshape(op.rms_norm(each, self.ones, -1, self.eps), (n, width))
        return normed * self.weight


class Mamba2(nn.Module):
    """Mamba-2's layer.

    The projection of the steps, whose numbers decide how much of the state is kept over thousands
    of rows, stays float32 in every scheme, as do the convolution, A_log, dt_bias and D.
    """

    def __init__(self, shape: Mamba2Shape) -> None:
        spec, d = shape.spec, shape.hidden_size
        _, *of_row, _ = shape.factors
        state = spec.groups * spec.state_dim
        self.shape = shape
        self.in_proj_z = nn.Linear(d, spec.inner, bias=shape.in_bias)
        self.in_proj_xbc = nn.Linear(d, spec.width, bias=shape.in_bias)
        self.in_proj_dt = Unquantized(d, spec.heads, bias=shape.in_bias)
        self.conv1d = ShortConv(
            spec.width,
            shape.taps,
            bias=shape.conv_bias,
            factors=tuple(zip((spec.inner, state, state), of_row, strict=True)),
        )
        self.A_log = exact((spec.heads,))
        self.dt_bias = exact((spec.heads,))
        self.D = exact((spec.heads,))
        self.norm = GatedGroupNorm(shape) if shape.normed else None
        self.out_proj = nn.Linear(spec.inner, d, bias=shape.out_bias)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        spec, factors = self.shape.spec, self.shape.factors
        x = scaled(x, self.shape.input_factor)
        xbc = self.conv1d(self.in_proj_xbc(x), batch)
        steps = scaled(self.in_proj_dt(x), factors[-1])
        args = [xbc, steps, batch.query_indptr, self._constants()]
        out = Tensor.placeholder([x.shape[0], spec.inner], x.dtype)
        y = op.extern(RECURRENCE, ["mamba2", spec.to_json(), *args], out)
        z = scaled(self.in_proj_z(x), factors[0])
        gated = y * activate(z, "silu", gated=False) if self.norm is None else self.norm(y, z)
        return self.out_proj(gated)

    def _constants(self) -> Tensor:
        func = constants(self.shape.spec.heads)
        out = Tensor.placeholder([3, self.shape.spec.heads], "float32")
        return op.tensor_ir_op(func, "constants", [self.A_log, self.dt_bias, self.D], out)


def scaled(x: Tensor, factor: float) -> Tensor:
    """Return x * factor, without a multiplication by 1."""
    return x if factor == 1.0 else x * factor


@cache
def constants(heads: int) -> tirx.PrimFunc:
    """Return the PrimFunc (A_log, dt_bias, D float32 [h]) -> [3, h], which runs at the load.

    The first row is the rate of the decay, -exp(A_log).
    """
    parts = [te.placeholder((heads,), "float32", name) for name in ("a_log", "dt_bias", "skip")]

    def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
        a_log, dt_bias, skip = (part[j] for part in parts)
        rate = tirx.const(0, "float32") - tirx.exp(a_log)
        return tirx.Select(i == 0, rate, tirx.Select(i == 1, dt_bias, skip))

    joined = te.compute((3, heads), element, "joined")
    func = te.create_prim_func([*parts, joined]).without_attr("global_symbol")
    return tag(func, "constants", {"heads": heads}).with_attr(PACK, True)


class Block(nn.Module):
    """Pre-norm block with attention or a Mamba-2 layer, as the configuration's `attends` says."""

    def __init__(self, cfg: Any, layer: int) -> None:
        self.scale = cfg.scales().residual
        self.input_layernorm = cfg.norm()
        self.attends = cfg.attends(layer)
        if self.attends:
            self.self_attn = decoder.Attention(cfg, layer)
        else:
            self.mamba = Mamba2(cfg.mamba2())
        self.post_attention_layernorm = cfg.norm()
        self.mlp = self.feed_forward(cfg, layer)

    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer."""
        return dense.GatedMLP(cfg.hidden_size, cfg.intermediate_size, bias=cfg.biases().mlp)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        mixer = self.self_attn if self.attends else self.mamba
        x = x + scaled(mixer(self.input_layernorm(x), batch), self.scale)
        return x + scaled(self.mlp(self.post_attention_layernorm(x)), self.scale)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


def _parted(kind: str) -> WeightRule:
    return split(f"in_proj.{kind}", *(f"in_proj_{part}.{kind}" for part in ("z", "xbc", "dt")))


# Weight rules of Mamba-2 layers.
MAMBA2 = (_parted("weight"), _parted("bias"), constant("norm.ones", 1.0))
# Weight rules of families that follow the first Mamba's names.
BACKBONE = (
    rename("model.embed_tokens.weight", "backbone.embeddings.weight"),
    either("backbone.embeddings.weight", "backbone.embedding.weight"),
    rename("model.norm.weight", "backbone.norm_f.weight"),
    rename("model.layers.*", "backbone.layers.*"),
)

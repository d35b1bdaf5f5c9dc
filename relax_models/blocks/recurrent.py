"""Layers with a recurrent state: a short causal convolution, and the gated delta rule.

A model states the operation; `passes/recurrent_state.py` adds the state and the slots.

Axes: n rows, d hidden, c channels, h value heads, g key heads, dk and dv elements of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import GatedDeltaSpec, ShortConvSpec
from wherry.ops.recurrent import LOG1P
from wherry.ops.tags import PACK, RECURRENCE, tag

from ..config import Count, Epsilon, Size, VocabSize
from ..decoder import ModelScales
from ..layers.activations import activate
from ..layers.dense import Unquantized, exact
from ..layers.norms import RMSNorm
from ..step import Batch

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentConfig:
    """Configuration fields of models without attention, whose contexts have no end of their own."""

    hidden_size: Size
    num_hidden_layers: Count
    vocab_size: VocabSize
    rms_norm_eps: Epsilon = 1e-5
    tie_word_embeddings: bool = False
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hidden_act": ("silu",)}
    IGNORED: ClassVar[tuple[str, ...]] = (
        "intermediate_size",
        "max_position_embeddings",
        "num_attention_heads",
        "num_key_value_heads",
        "rescale_prenorm_residual",
        "residual_in_fp32",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_rank",
    )

    @property
    def context(self) -> int:
        """Return the context length in tokens that is usual for such models."""
        return 2**17

    @property
    def longest(self) -> int:
        """Return the longest context in tokens: a state may be updated without end."""
        return 2**24

    @property
    def ends(self) -> str:
        """Return what happens at `longest`, as an error says it."""
        return "counted positions end"

    def at(self, context: int) -> Self:
        """Return the configuration for `context` tokens, which is the same for all."""
        return self

    def scales(self) -> ModelScales:
        """Return the constant multipliers of embeddings, residuals and logits."""
        return ModelScales()

    def norm(self, size: int | None = None) -> nn.Module:
        """Return the family's norm over `size` elements; None: over hidden_size."""
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps)


class ShortConv(nn.Module):
    """Causal convolution of each channel over the last `taps` rows of a sequence.

    Its weight [c, 1, taps] has the checkpoints' layout and stays float32 in every scheme.

    Args:
        channels: c.
        taps: inputs that a result depends on.
        activation: the activation of the results.
        bias: whether a channel has a bias.
        factors: numbers of consecutive channels, and the factor of their inputs, which the weights
            take on at the load; (): no factors.
    """

    def __init__(
        self,
        channels: int,
        taps: int,
        *,
        activation: Literal["silu", "none"] = "silu",
        bias: bool = False,
        factors: tuple[tuple[int, float], ...] = (),
    ) -> None:
        self.factors = factors if any(factor != 1.0 for _, factor in factors) else ()
        self.spec = ShortConvSpec(channels=channels, taps=taps, activation=activation, bias=bias)
        self.weight = exact((channels, 1, taps))
        self.bias = exact((channels,)) if bias else None

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Convolve: x [n, c] -> [n, c]."""
        func = taps_first(self.spec.channels, self.spec.taps, self.factors)
        shape = [self.spec.taps, self.spec.channels]
        turned = Tensor.placeholder(shape, self.weight.dtype)
        weight = op.tensor_ir_op(func, "taps_first", [self.weight], turned)
        args = [x, batch.sequences, batch.query_indptr, weight]
        args += [] if self.bias is None else [self.bias]
        out = Tensor.placeholder(list(x.shape), x.dtype)
        return op.extern(RECURRENCE, ["short_conv", self.spec.to_json(), *args], out)


@cache
def taps_first(
    channels: int, taps: int, factors: tuple[tuple[int, float], ...] = ()
) -> tirx.PrimFunc:
    """Return the PrimFunc (weight float32 [c, 1, taps]) -> [taps, c], which runs at the load.

    With `factors` it multiplies consecutive channels.
    """
    weight = te.placeholder((channels, 1, taps), "float32", "weight")

    def element(j: tirx.Var, c: tirx.Var) -> tirx.PrimExpr:
        if not factors:
            return weight[c, 0, j]
        *_, scale = (tirx.const(factor, "float32") for _, factor in factors)
        stop = channels
        for count, factor in reversed(factors):
            scale = tirx.Select(c < stop, tirx.const(factor, "float32"), scale)
            stop -= count
        return weight[c, 0, j] * scale

    turned = te.compute((taps, channels), element, "turned")
    func = te.create_prim_func([weight, turned]).without_attr("global_symbol")
    return tag(func, "taps_first", {"taps": taps}).with_attr(PACK, True)


class GatedNorm(RMSNorm):
    """RMSNorm of each head, times a gate."""

    def each(self, x: Tensor) -> Tensor:
        """Normalize each head: x [n, h * dv] -> [n, h * dv]."""
        n, width = x.shape
        heads = int(width) // self.size
        return op.reshape(self.forward(op.reshape(x, (n * heads, self.size))), (n, width))

    def gated(self, x: Tensor, z: Tensor) -> Tensor:
        """Normalize each head, times silu of a gate: x and z [n, h * dv] -> [n, h * dv]."""
        return self.each(x) * activate(z, "silu", gated=False)


def channel_decays(gates: Tensor, a_log: Tensor, dt_bias: Tensor) -> Tensor:
    """Compute the decays of each element of a key: gates [n, h * dk] -> [n, h * dk].

    They are exp(-exp(a_log) * softplus(gates + dt_bias)), with a_log [1, 1, h, 1] and dt_bias
    [h * dk].
    """
    size = int(dt_bias.shape[0]) // int(a_log.shape[2])

    def compute(gates: te.Tensor, a_log: te.Tensor, dt_bias: te.Tensor) -> te.Tensor:
        def element(i: tirx.Var, j: tirx.Var) -> tirx.PrimExpr:
            rate = _exp(a_log[0, 0, tirx.floordiv(j, size), 0])
            return _exp(_number(0.0) - rate * softplus(gates[i, j] + dt_bias[j]))

        return te.compute(gates.shape, element, "decays")

    return op.tensor_expr_op(compute, "decays", [gates, a_log, dt_bias])


def softplus(x: tirx.PrimExpr) -> tirx.PrimExpr:
    """Return the expression log(1 + e^x), float32, without a logarithm."""
    u = _exp(_number(0.0) - tirx.abs(x))
    ratio = u / (_number(2.0) + u)
    series = _number(LOG1P[0])
    for coefficient in LOG1P[1:]:
        series = series * (ratio * ratio) + _number(coefficient)
    return tirx.max(x, _number(0.0)) + _number(2.0) * ratio * series


def _exp(x: tirx.PrimExpr) -> tirx.PrimExpr:
    """Return the expression e^x, clamped: in WGSL the result of an overflow is undefined."""
    return tirx.exp(tirx.min(tirx.max(x, _number(-87.0)), _number(87.0)))


def _number(value: float) -> tirx.PrimExpr:
    return tirx.const(value, "float32")


class GatedDeltaNet(nn.Module):
    """Linear attention by the gated delta rule, with a convolution of q, k and v before it.

    `in_proj_ba`, whose numbers decide how much of the state is kept over thousands of rows, stays
    float32 in every scheme, as do the convolution, A_log and dt_bias.
    """

    def __init__(self, spec: GatedDeltaSpec, hidden_size: int, taps: int, eps: float) -> None:
        self.spec = spec
        values = spec.heads * spec.value_dim
        self.conv1d = ShortConv(spec.width, taps)
        self.in_proj_qkv = nn.Linear(hidden_size, spec.width, bias=False)
        self.in_proj_z = nn.Linear(hidden_size, values, bias=False)
        self.in_proj_ba = Unquantized(hidden_size, 2 * spec.heads, bias=False)
        self.A_log = exact((spec.heads,))
        self.dt_bias = exact((spec.heads,))
        self.norm = GatedNorm(spec.value_dim, eps)
        self.out_proj = nn.Linear(values, hidden_size, bias=False)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        qkv = self.conv1d(self.in_proj_qkv(x), batch)
        args = [qkv, self.in_proj_ba(x), batch.query_indptr, self.A_log, self.dt_bias]
        out = Tensor.placeholder([x.shape[0], self.spec.heads * self.spec.value_dim], x.dtype)
        mixed = op.extern(RECURRENCE, ["gated_delta", self.spec.to_json(), *args], out)
        return self.out_proj(self.norm.gated(mixed, self.in_proj_z(x)))

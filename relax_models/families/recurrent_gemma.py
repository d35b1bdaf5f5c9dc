"""RecurrentGemma (Griffin): gated linear recurrences, and windowed attention in some layers.

Source: transformers' `modeling_recurrent_gemma.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from tvm import te, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import LinearRecurrenceSpec
from wherry.ops.tags import PACK, RECURRENCE, tag

from .. import decoder
from ..arch import Architecture, rename, unpack
from ..blocks.experts import ExpertLinear
from ..blocks.recurrent import ShortConv, softplus
from ..config import Count, Factor, Positions, Size
from ..decoder import WEIGHTS, Biases, ModelScales
from ..layers.activations import activate
from ..layers.dense import EXACT, GatedMLP, exact
from ..layers.norms import RMSNorm
from ..step import Batch

ATTENTION, RECURRENT = "attention", "recurrent"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentGemmaConfig(decoder.DecoderConfig):
    """Fields of RecurrentGemma's config.json that shape the computation."""

    max_position_embeddings: Positions = 8192
    tie_word_embeddings: bool = True
    attention_bias: bool = False
    attention_window_size: Positions = 2048
    lru_width: Size | None = None  # channels of the recurrences; None: hidden_size
    conv1d_width: Count = 4
    logits_soft_cap: Factor = 30.0
    block_types: tuple[str, ...] = (RECURRENT, RECURRENT, ATTENTION)  # of the layers, repeated
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partial_rotary_factor": 0.5}
    ALIASES: ClassVar[Mapping[str, str]] = {
        "_block_types": "block_types",
        "sliding_window": "attention_window_size",
    }
    ACCEPTED: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "hidden_activation": ("gelu_pytorch_tanh",),
        "embeddings_scale_by_sqrt_dim": (True,),
    }
    IGNORED: ClassVar[tuple[str, ...]] = ("final_w_init_variance_scale", "w_init_variance_scale")

    def problems(self) -> Iterator[str]:
        yield from decoder.DecoderConfig.problems(self)
        unknown = sorted(set(self.block_types) - {ATTENTION, RECURRENT})
        if unknown or not self.block_types:
            yield (
                f"block_types: found {', '.join(unknown) or 'none'}, "
                f"supported are {ATTENTION} and {RECURRENT}"
            )
        if self.channels % self.num_attention_heads:
            yield (
                f"lru_width: {self.channels} is not divisible by the {self.num_attention_heads} of "
                "num_attention_heads"
            )
        if self.intermediate_size % 2:
            yield f"intermediate_size: found {self.intermediate_size}; half of it is the width"
        if self.conv1d_width < 2:
            yield f"conv1d_width: {self.conv1d_width} found, minimum is 2"

    @property
    def channels(self) -> int:
        """Return the channels of the recurrences."""
        return self.lru_width or self.hidden_size

    def attends(self, layer: int) -> bool:
        """Return whether a layer has attention; the others have a recurrence."""
        return self.block_types[layer % len(self.block_types)] == ATTENTION

    def windowed(self, layer: int) -> bool:
        """Return whether a layer has the sliding window: all attention has it."""
        return self.attends(layer)

    def window_of(self, layer: int) -> int | None:
        window = self.attention_window_size
        return window if self.windowed(layer) and window < self.context else None

    def biases(self) -> Biases:
        return Biases(qkv=self.attention_bias, out=True)

    def scales(self) -> ModelScales:
        scale = _bfloat16(self.hidden_size**0.5)
        return ModelScales(embedding=scale, logit_cap=float(self.logits_soft_cap))

    def norm(self, size: int | None = None) -> nn.Module:
        return RMSNorm(size or self.hidden_size, self.rms_norm_eps, offset=1.0)


def _bfloat16(value: float) -> float:
    """Return a number rounded to bfloat16, to nearest even."""
    bits = int(np.float32(value).view(np.uint32))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(np.uint32(bits & 0xFFFF0000).view(np.float32))


class LinearRecurrence(nn.Module):
    """RG-LRU: a linear recurrence of each channel, whose input and decay have gates.

    The gates, which decide how much of the state is kept over thousands of rows, stay float32 in
    every scheme.
    """

    def __init__(self, channels: int, heads: int) -> None:
        self.spec, self.heads, width = (
            LinearRecurrenceSpec(channels=channels),
            heads,
            channels // heads,
        )
        self.input_gate = ExpertLinear(heads, width, width)
        self.recurrent_gate = ExpertLinear(heads, width, width)
        for gate in (self.input_gate, self.recurrent_gate):
            gate.weight.attrs[EXACT] = True
        self.input_gate_bias = exact((heads, width))
        self.recurrent_gate_bias = exact((heads, width))
        self.recurrent_param = exact((channels,))

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the recurrence: x [n, c] -> [n, c]."""
        n, c = x.shape[0], self.spec.channels
        each = op.reshape(x, (n * self.heads, c // self.heads))
        gates = [
            op.sigmoid(op.reshape(gate.each(each), (n, c)) + op.reshape(bias, (c,)))
            for gate, bias in (
                (self.input_gate, self.input_gate_bias),
                (self.recurrent_gate, self.recurrent_gate_bias),
            )
        ]
        logs = gates[1] * self._rates()
        inputs = op.tensor_expr_op(_inputs, "inputs", [x, gates[0], logs, batch.positions])
        args = [inputs, op.exp(logs), batch.query_indptr]
        out = Tensor.placeholder(list(x.shape), x.dtype)
        return op.extern(RECURRENCE, ["linear_recurrence", self.spec.to_json(), *args], out)

    def _rates(self) -> Tensor:
        out = Tensor.placeholder([self.spec.channels], "float32")
        func = rates(self.spec.channels)
        return op.tensor_ir_op(func, "rates", [self.recurrent_param], out)


@cache
def rates(channels: int) -> tirx.PrimFunc:
    """Return the PrimFunc (x [c]) -> -8 softplus(x), which runs at the load."""
    x = te.placeholder((channels,), "float32", "x")
    rate = te.compute((channels,), lambda c: tirx.const(-8.0, "float32") * softplus(x[c]), "rate")
    func = te.create_prim_func([x, rate]).without_attr("global_symbol")
    return tag(func, "rates", {"channels": channels}).with_attr(PACK, True)


def _inputs(x: te.Tensor, gate: te.Tensor, logs: te.Tensor, positions: te.Tensor) -> te.Tensor:
    """Return x * gate * sqrt(1 - decay^2), all [n, c]; at a sequence's first position x * gate."""
    zero, one, two = (tirx.const(value, "float32") for value in (0.0, 1.0, 2.0))

    def element(i: tirx.Var, c: tirx.Var) -> tirx.PrimExpr:
        norm = tirx.sqrt(tirx.max(one - tirx.exp(two * logs[i, c]), zero))
        return x[i, c] * gate[i, c] * tirx.Select(positions[i] == 0, one, norm)

    return te.compute(x.shape, element, "inputs")


class RecurrentBlock(nn.Module):
    """A convolution and a linear recurrence, times a branch with an activation."""

    def __init__(self, cfg: RecurrentGemmaConfig) -> None:
        d, c = cfg.hidden_size, cfg.channels
        self.linear_x = nn.Linear(d, c, bias=True)
        self.linear_y = nn.Linear(d, c, bias=True)
        self.conv_1d = ShortConv(c, cfg.conv1d_width, activation="none", bias=True)
        self.rg_lru = LinearRecurrence(c, cfg.num_attention_heads)
        self.linear_out = nn.Linear(c, d, bias=True)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        y = activate(self.linear_y(x), "gelu_tanh", gated=False)
        return self.linear_out(self.rg_lru(self.conv_1d(self.linear_x(x), batch), batch) * y)


class Block(nn.Module):
    """Pre-norm block with attention or a recurrence."""

    def __init__(self, cfg: RecurrentGemmaConfig, layer: int) -> None:
        attends = cfg.attends(layer)
        self.temporal_pre_norm = cfg.norm()
        self.temporal_block = decoder.Attention(cfg, layer) if attends else RecurrentBlock(cfg)
        self.channel_pre_norm = cfg.norm()
        width = cfg.intermediate_size // 2
        self.mlp_block = GatedMLP(cfg.hidden_size, width, "gelu_tanh", bias=True)

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        """Run the layer: x [n, d] -> [n, d]."""
        x = x + self.temporal_block(self.temporal_pre_norm(x), batch)
        return x + self.mlp_block(self.channel_pre_norm(x))


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


ARCH = Architecture(
    name="recurrent_gemma",
    config=RecurrentGemmaConfig,
    model=CausalLM,
    weights=(
        unpack("rg_lru.input_gate.weight", "rg_lru.input_gate_weight"),
        unpack("rg_lru.recurrent_gate.weight", "rg_lru.recurrent_gate_weight"),
        *WEIGHTS,
        rename("model.norm.weight", "model.final_norm.weight"),
    ),
)

"""Mixtures of experts: a router chooses the few feed-forwards that compute a row.

`experts_of` of a family's configuration describes them. Axes: n rows, d hidden, f feed-forward, E
experts, K experts of a row; slot i * K + k is the k-th expert of row i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tvm import te
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import Tensor, op

from wherry.ops import ExpertLinearSpec, GateName, RouteSpec, Scheme

from .. import decoder
from ..arch import rename, stack
from ..layers.dense import GatedMLP, Unquantized, exact
from . import expert_reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Shape of the sparse feed-forward of a layer."""

    routing: RouteSpec
    size: int  # width f of an expert's feed-forward
    shared: int = 0  # width of the shared expert, which computes every row; 0: there is none
    shared_gate: bool = False  # the shared expert's result is multiplied by sigmoid(linear(x))
    shared_bias: bool = False  # whether the shared expert's linears have biases
    # axes of the router's correction bias in a checkpoint: 1 for [E], 2 for [1, E]
    bias_axes: int = 1
    gate: GateName = "silu"
    biases: bool = False  # whether router and experts have biases
    alpha: float = 1.702  # slope of the sigmoid in the gate "clamped"
    limit: float = 7.0  # limit of the gate "clamped"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen experts of each row, as `expert_reference.route` describes them."""

    ids: Tensor  # int32 [n, K]
    weights: Tensor  # float32 [n, K]
    starts: Tensor  # int32 [E + 1]
    slots: Tensor  # int32 [n * K]

    @property
    def order(self) -> list[Tensor]:
        """Return the routing arguments of an expert linear."""
        return [self.ids, self.starts, self.slots]


def route(logits: Tensor, bias: Tensor | None, routing: RouteSpec) -> Chosen:
    """Choose the experts of each row from logits [n, E]."""
    n, k = logits.shape[0], routing.top_k
    out = [
        Tensor.placeholder([n, k], "int32"),
        Tensor.placeholder([n, k], "float32"),
        Tensor.placeholder([routing.experts + 1], "int32"),
        Tensor.placeholder([n * k], "int32"),
    ]
    func = expert_reference.route(routing)
    args = [op.astype(t, "float32") for t in (logits, *([] if bias is None else [bias]))]
    return Chosen(*op.tensor_ir_op(func, "route", args, out))


class _Floats:
    """What `expert_reference` asks of a scheme, of weights that are floats."""

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Widen."""
        return stored[0][row, column].astype("float32")


FLOATS = _Floats()
_SCHEMES: dict[str, Scheme] = {"float32": "f32", "float16": "f16"}


class ExpertLinear(nn.Module):
    """y = x W^T + b for each slot, with its expert's weights."""

    def __init__(
        self, experts: int, in_features: int, out_features: int, *, bias: bool = False
    ) -> None:
        self.experts, self.in_features, self.out_features = experts, in_features, out_features
        self.weight = nn.Parameter((experts, out_features, in_features))
        self.bias = nn.Parameter((experts, out_features)) if bias else None

    def forward(
        self,
        x: Tensor,
        chosen: Chosen,
        *,
        gate: GateName | None = None,
        alpha: float = 0.0,
        limit: float = 0.0,
        combined: bool = False,
    ) -> Tensor:
        """x [n, in] -> [n * K, out, or half of them with a gate].

        Combined: x [n * K, in] -> [n, out], the weighted sum over a row's experts.
        """
        spec = self._spec(
            top_k=int(chosen.ids.shape[1]),
            gate=gate,
            alpha=alpha if gate == "clamped" else 1.0,
            limit=limit if gate == "clamped" else 0.0,
            bias=self.bias is not None,
            combined=combined,
        )
        width = self.out_features // 2 if gate else self.out_features
        rows = chosen.ids.shape[0] if combined else chosen.slots.shape[0]
        args = [x, *chosen.order, *([chosen.weights] if combined else [])]
        return self._call(spec, [*args, *([] if self.bias is None else [self.bias])], rows, width)

    def each(self, x: Tensor) -> Tensor:
        """x [n * experts, in] -> [n * experts, out]: row i takes expert i % experts."""
        spec = self._spec(top_k=self.experts, routed=False)
        return self._call(spec, [x], x.shape[0], self.out_features)

    def _call(self, spec: ExpertLinearSpec, args: list[Tensor], rows: Any, width: int) -> Tensor:
        dtype = args[0].dtype
        stored = [te.placeholder(self.weight.shape, self.weight.dtype, "weight")]
        func = expert_reference.expert_linear(asdict(spec), FLOATS, stored, dtype)
        out = Tensor.placeholder([rows, width], dtype)
        return op.tensor_ir_op(func, "expert_linear", [*args, self.weight], out)

    def _spec(self, **fields: Any) -> ExpertLinearSpec:
        return ExpertLinearSpec(
            experts=self.experts,
            out_features=self.out_features,
            in_features=self.in_features,
            scheme=_SCHEMES[self.weight.dtype],
            **fields,
        )


class ExpertBank(nn.Module):
    """The gated feed-forwards of all experts."""

    def __init__(self, hidden_size: int, spec: Experts) -> None:
        self.spec, count = spec, spec.routing.experts
        self.gate_up_proj = ExpertLinear(count, hidden_size, 2 * spec.size, bias=spec.biases)
        self.down_proj = ExpertLinear(count, spec.size, hidden_size, bias=spec.biases)

    def forward(self, x: Tensor, chosen: Chosen) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        spec = self.spec
        gate = {"gate": spec.gate, "alpha": spec.alpha, "limit": spec.limit}
        h = self.gate_up_proj(x, chosen, **gate)
        return self.down_proj(h, chosen, combined=True)


class SparseMLP(nn.Module):
    """Sparse feed-forward: a router, its experts, and the shared expert, if any."""

    def __init__(self, hidden_size: int, spec: Experts) -> None:
        self.routing = spec.routing
        count = spec.routing.experts
        self.router = Unquantized(hidden_size, count, bias=spec.biases)
        shape = (count,) if spec.bias_axes == 1 else (1, count)
        self.e_score_correction_bias = exact(shape) if spec.routing.bias else None
        self.experts = ExpertBank(hidden_size, spec)
        self.shared_experts = (
            GatedMLP(hidden_size, spec.shared, bias=spec.shared_bias) if spec.shared else None
        )
        self.shared_expert_gate = (
            Unquantized(hidden_size, 1, bias=False) if spec.shared_gate else None
        )

    def forward(self, x: Tensor) -> Tensor:
        """Compute the feed-forward: x [n, d] -> [n, d]."""
        bias = self.e_score_correction_bias
        if bias is not None and len(bias.shape) == 2:
            bias = op.reshape(bias, (self.routing.experts,))
        chosen = route(self.router(x), bias, self.routing)
        y = self.experts(x, chosen)
        if self.shared_experts is None:
            return y
        shared = self.shared_experts(x)
        if self.shared_expert_gate is not None:
            shared = shared * op.sigmoid(self.shared_expert_gate(x))
        return y + shared


def feed_forward(cfg: Any, layer: int) -> nn.Module:
    """Return a layer's feed-forward: sparse where `cfg.experts_of` says so."""
    spec: Experts | None = cfg.experts_of(layer)
    if spec is None:
        return GatedMLP(cfg.hidden_size, cfg.intermediate_size, bias=cfg.biases().mlp)
    return SparseMLP(cfg.hidden_size, spec)


class Block(decoder.Block):
    """Pre-norm block with a feed-forward that may be sparse."""

    def feed_forward(self, cfg: Any, layer: int) -> nn.Module:
        """Return the feed-forward of a layer: sparse where `cfg.experts_of` says so."""
        return feed_forward(cfg, layer)


class Decoder(decoder.Decoder):
    block = Block


class CausalLM(decoder.CausalLM):
    decoder = Decoder


GATE_UP, DOWN = "mlp.experts.gate_up_proj.weight", "mlp.experts.down_proj.weight"
EXPERT = "mlp.experts.{}"
# Weight rules of checkpoints that have one tensor per expert.
EACH = (
    stack(GATE_UP, f"{EXPERT}.gate_proj.weight", f"{EXPERT}.up_proj.weight"),
    stack(DOWN, f"{EXPERT}.down_proj.weight"),
)
# Weight rules of families of which some checkpoints have one tensor for all experts.
EACH_OR_FUSED = tuple(replace(rule, fused=rule.param.removesuffix(".weight")) for rule in EACH)
# Weight rules of those that also call the router "gate".
STACKED = (
    *EACH,
    rename("mlp.router.weight", "mlp.gate.weight"),
    rename("mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),
)

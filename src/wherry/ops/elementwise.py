"""Records of norms and activations, which process each row separately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .record import Record, check_positive

ActivationName = Literal["silu", "gelu", "gelu_tanh", "relu", "relu2"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RMSNormSpec(Record):
    """Spec of RMSNorm: y = x / sqrt(mean(x^2) + eps) * w over the last axis of [n, dim]."""

    dim: int
    eps: float

    def __post_init__(self) -> None:
        check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNormSpec(Record):
    """Spec of LayerNorm: y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * w + b.

    The mean is over the last axis of [n, dim]. Without `bias` there is no b.
    """

    dim: int
    eps: float
    bias: bool

    def __post_init__(self) -> None:
        check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwiGLUSpec(Record):
    """Spec of SwiGLU: y[n, dim] = silu(x[n, :dim]) * x[n, dim:] of x [n, 2 * dim]."""

    dim: int

    def __post_init__(self) -> None:
        check_positive(self, "dim")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationSpec(Record):
    """Spec of an activation: y[n, dim] = f(x[n, dim]); gated: f(x[n, :dim]) * x[n, dim:].

    A gated one reads x [n, 2 * dim]. "gelu" has the error function, "gelu_tanh" its approximation,
    "relu2" is max(x, 0)^2.
    """

    dim: int
    kind: ActivationName
    gated: bool = False

    def __post_init__(self) -> None:
        check_positive(self, "dim")
        if self.kind not in get_args(ActivationName):
            raise ValueError(f"kind {self.kind!r} is not one of {get_args(ActivationName)}")

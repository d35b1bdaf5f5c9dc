"""Records of the operations of a mixture of experts.

Axes: n rows, E experts, K experts of a row (`top_k`); a *slot* i * K + k is the k-th expert of row
i. A row's experts are in ascending order, and its sums add in that order, so they depend on the row
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from .linear import LinearSpec
from .record import FloatName, Record, Scheme, check_floats, check_positive

ScoreName = Literal["softmax", "sigmoid", "sparsemixer"]
GateName = Literal["silu", "gelu_tanh", "clamped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec(Record):
    """Spec of routing: choose the K experts of each row, and their weights, from logits [n, E].

    score = softmax(logits) or sigmoid(logits). The experts with the highest score + bias win, the
    first of equal ones. With `groups` only experts of the `kept_groups` best groups compete; a
    group's score is the sum of its `group_top` highest. weight = score; if `normalized`, divided by
    the sum of the chosen ones plus `added`, which is at least `floor`; times `scale`. "sparsemixer"
    (https://arxiv.org/abs/2409.12136) chooses the first and the second highest logit. Each is
    weighted by its softmax over the logits whose distance from it, divided by the larger of it and
    their own magnitude, is at most 2 * `jitter`; the second without the first.
    """

    experts: int  # number of experts E
    top_k: int  # experts per row K
    score: ScoreName = "softmax"
    bias: bool = False  # whether a bias is added for the choice, not for the weights
    groups: int = 1
    kept_groups: int = 1
    group_top: int = 1  # number of scores whose sum is a group's score: 1 or 2
    normalized: bool = False
    floor: float = 1e-20
    added: float = 0.0
    scale: float = 1.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        check_positive(self, "experts", "top_k", "groups", "kept_groups", "group_top")
        if self.score not in get_args(ScoreName):
            raise ValueError(f"score {self.score!r} is not one of {get_args(ScoreName)}")
        if self.experts % self.groups or self.kept_groups > self.groups:
            raise ValueError(
                f"{self.kept_groups} of {self.groups} groups do not fit {self.experts} experts"
            )
        if self.top_k > self.kept_groups * (self.experts // self.groups):
            raise ValueError(f"top_k {self.top_k} experts are more than the groups have")
        if self.group_top > min(2, self.experts // self.groups):
            raise ValueError(f"group_top is 1 or 2 of a group, found {self.group_top}")
        if self.score == "sparsemixer" and (self.top_k != 2 or self.bias or self.groups > 1):
            raise ValueError("sparsemixer takes two of all experts, and has no bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertLinearSpec(Record):
    """Spec of an expert linear: each slot times its expert's weights [E, N, d].

    The weights are stored as a linear's. With a `gate` a slot's result has N / 2 columns: silu(left
    half) * right half, or with "gelu_tanh" GELU's approximation instead of silu; "clamped"
    (gpt-oss) is min(left, limit) * sigmoid(alpha * that) * (1 + clip(right, -limit, limit)). Not
    `combined`: x [n, d] -> [n * K, width]. Combined: x [n * K, d] -> [n, N], the weighted sum of a
    row's slots. `routed` false: slot k always has expert k, and K = E: x [n * K, d] -> [n * K, N].
    x and y may be stored in float16; everything else is float32.
    """

    experts: int  # number of experts E
    top_k: int  # experts per row K
    out_features: int  # rows N of an expert's weight
    in_features: int  # columns d of an expert's weight
    scheme: Scheme
    scale_dtype: FloatName | None = None
    group: int = 32
    gate: GateName | None = None
    alpha: float = 1.702
    limit: float = 7.0
    bias: bool = False  # whether there is a bias [E, N], float32
    combined: bool = False
    # Whether a tensor of y's shape, an argument after the weights, is added to y; only if combined.
    residual: bool = False
    routed: bool = True
    x_dtype: FloatName = "float32"
    y_dtype: FloatName = "float32"

    def __post_init__(self) -> None:
        check_positive(self, "experts", "top_k")
        check_floats(self, "x_dtype", "y_dtype")
        self.linear()
        if self.gate is not None and self.gate not in get_args(GateName):
            raise ValueError(f"gate {self.gate!r} is not one of {get_args(GateName)}")
        if self.gate and (self.combined or self.out_features % 2):
            raise ValueError(f"a gate needs an even out_features, found {self.out_features}")
        if self.residual and not self.combined:
            raise ValueError("a residual is added to what is combined")
        if self.top_k > self.experts:
            raise ValueError(f"top_k {self.top_k} is more than the {self.experts} experts")
        if not self.routed and (self.combined or self.gate or self.top_k != self.experts):
            raise ValueError("without a choice each slot has its own expert, and nothing else")

    def linear(self) -> LinearSpec:
        """Return the spec of one expert's linear."""
        return LinearSpec(
            out_features=self.out_features,
            in_features=self.in_features,
            scheme=self.scheme,
            scale_dtype=self.scale_dtype,
            group=self.group,
        )

    @property
    def width(self) -> int:
        """Return the number of columns of y."""
        return self.out_features // 2 if self.gate else self.out_features

    @property
    def shared_rows(self) -> bool:
        """Return whether the slots of a row read the same row of x."""
        return self.routed and not self.combined

    @property
    def inputs(self) -> int:
        """Return the number of arguments before the weights."""
        return 1 + 3 * self.routed + self.combined + self.bias

"""Mixtures of experts in NumPy: the choice, and the linears, of random rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wherry.ops.blocks import FORMATS
from wherry.quant.affine import AFFINE
from wherry.quant.blocks import BLOCKS, FLOATS_8, TERNARIES, TRELLISES
from wherry.targets.kernels import ExpertLinearSpec, RouteSpec

from ..support.random_blocks import random_stored
from .test_cpu_linear import portable

ROUTES = {
    "softmax": RouteSpec(experts=20, top_k=4),
    "normalized": RouteSpec(experts=128, top_k=8, normalized=True, scale=1.5),
    "sigmoid-groups": RouteSpec(
        experts=24,
        top_k=5,
        score="sigmoid",
        bias=True,
        groups=4,
        kept_groups=2,
        group_top=2,
        normalized=True,
        scale=2.5,
    ),
    "softmax-groups": RouteSpec(experts=12, top_k=3, groups=3, kept_groups=2),
    "sparsemixer": RouteSpec(experts=16, top_k=2, score="sparsemixer", jitter=0.05),
    "one": RouteSpec(experts=5, top_k=1, bias=True, normalized=True),
    "all": RouteSpec(experts=3, top_k=3),
}


def highest(x: np.ndarray, count: int) -> np.ndarray:
    """Indices of the highest of x [e], of several alike the first, in ascending order."""
    return np.sort(np.argsort(-x, kind="stable")[:count])


def route(spec: RouteSpec, logits: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(ids [n, K], weights [n, K]), float64."""
    choices = [choose(spec, row.astype("float64"), bias) for row in logits]
    return np.array([ids for ids, _ in choices]), np.array([weights for _, weights in choices])


def choose(spec: RouteSpec, x: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if spec.score == "sparsemixer":
        return sparsemixer(spec, x)
    score = 1 / (1 + np.exp(-x))
    if spec.score == "softmax":
        score = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    choice = score + (bias if spec.bias else 0)
    if spec.groups > 1:
        groups = choice.reshape(spec.groups, -1)
        kept = highest(np.sort(groups)[:, -spec.group_top :].sum(-1), spec.kept_groups)
        out = np.ones(spec.groups, bool)
        out[kept] = False
        groups[out] = -np.inf
        choice = groups.reshape(-1)
    ids = highest(choice, spec.top_k)
    weights = score[ids]
    if spec.normalized:
        weights = weights / weights.sum()
    return ids, weights * spec.scale


def sparsemixer(spec: RouteSpec, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, ids, weights = x.copy(), [], []
    for _ in range(2):
        best = int(np.argmax(left))
        near = (left[best] - left) / np.maximum(np.abs(x), left[best]) <= 2 * spec.jitter
        total = np.exp(left[near & np.isfinite(left)] - left[best]).sum()
        ids.append(best)
        weights.append(1 / total)
        left[best] = -np.inf
    order = np.argsort(ids)
    return np.array(ids)[order], np.array(weights)[order]


def slots_of(ids: np.ndarray, experts: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts [E + 1], slots [n K]) of ids [n, K], int32."""
    flat = ids.reshape(-1)
    starts = np.searchsorted(np.sort(flat), np.arange(experts + 1))
    return starts.astype("int32"), np.argsort(flat, kind="stable").astype("int32")


@dataclass(frozen=True)
class Bank:
    """Random weights of experts, as stored and as they are."""

    spec: ExpertLinearSpec
    stored: list[np.ndarray]
    weight: np.ndarray  # float32 [E, N, d]
    bias: np.ndarray  # [E, N]

    @classmethod
    def of(cls, rng: np.random.Generator, spec: ExpertLinearSpec) -> Bank:
        matrices = [_matrix(rng, spec, expert) for expert in range(spec.experts)]
        stored = [np.stack(tensors) for tensors in zip(*(s for s, _ in matrices), strict=True)]
        bias = rng.standard_normal((spec.experts, spec.out_features)).astype("float32")
        return cls(spec, stored, np.stack([w for _, w in matrices]), bias)

    def expected(self, x: np.ndarray, ids: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """What the kernel gives, float64."""
        spec = self.spec
        slots = ids.size if spec.routed else len(x)
        experts = ids.reshape(-1) if spec.routed else np.arange(slots) % spec.experts
        rows = np.arange(slots) // spec.top_k if spec.shared_rows else np.arange(slots)
        y = np.einsum("sk,snk->sn", x[rows].astype("float64"), self.weight[experts])
        y = y + (self.bias[experts] if spec.bias else 0)
        if spec.gate:
            y = gated(spec, *np.split(y, 2, -1))
        if spec.combined:
            y = (y.reshape(*ids.shape, -1) * weights[..., None]).sum(1)
        return y


def _matrix(rng: np.random.Generator, spec: ExpertLinearSpec, expert: int) -> Any:
    """Stored tensors of an expert, and what they are."""
    n, k = spec.out_features, spec.in_features
    if spec.scheme not in FORMATS:
        return portable(rng, n, k, spec.scheme, spec.scale_dtype)
    every = (*BLOCKS, *TRELLISES, *FLOATS_8, *TERNARIES, *AFFINE)
    scheme = next(s for s in every if s.kernel_spec()["scheme"] == spec.scheme)
    stored = random_stored(scheme, n, k, expert)
    return list(stored.values()), scheme.decode(stored, k)


def in_blocks(spec: ExpertLinearSpec, name: str) -> ExpertLinearSpec:
    """A spec with weights in a block format."""
    own = FORMATS[name]
    return replace(spec, scheme=name, scale_dtype=own.floats, group=own.group)


def gated(spec: ExpertLinearSpec, gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    if spec.gate == "silu":
        return gate / (1 + np.exp(-gate)) * up
    if spec.gate == "gelu_tanh":
        return gate / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3))) * up
    gate, up = np.minimum(gate, spec.limit), np.clip(up, -spec.limit, spec.limit)
    return gate / (1 + np.exp(-spec.alpha * gate)) * (up + 1)


def arguments(spec: ExpertLinearSpec, bank: Bank, x: Any, ids: Any, weights: Any) -> list[Any]:
    """Of a kernel, but weights and result."""
    order = [ids, *slots_of(ids, spec.experts)] if spec.routed else []
    return [x, *order, *([weights] if spec.combined else []), *([bank.bias] if spec.bias else [])]


def empty(spec: ExpertLinearSpec, rows: int) -> np.ndarray:
    """Memory for the result of a number of rows."""
    slots = rows if spec.combined else rows * spec.top_k
    return np.full((slots, spec.width), np.nan, "float32")

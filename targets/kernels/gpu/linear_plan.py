"""Tiling of a linear, and the loads and stores of its kernels.

`linear` documents the order of sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import FusedLinearSpec

from . import emit as e
from .elementwise import gated
from .limits import GpuLimits
from .norm import Load, inverses_rms
from .weights import GROUP, WORD, Weights

MOST_LANES = 16
GEMV_THREADS = 128  # threads of a GEMV block, and of any block that sums the squares of a row


@dataclass(frozen=True, slots=True)
class LinearTiling:
    """Tiling of one linear."""

    spec: FusedLinearSpec
    limits: GpuLimits
    lanes: int
    groups: int

    @staticmethod
    def of(spec: FusedLinearSpec, limits: GpuLimits) -> LinearTiling:
        """Return the tiling for `spec`."""
        groups = -(-spec.in_features // GROUP)
        lanes = 1
        while lanes < min(groups, MOST_LANES):
            lanes *= 2
        return LinearTiling(spec, limits, lanes, groups)

    @property
    def gemv_threads(self) -> int:
        """Return the threads of a GEMV block, and of the blocks that sum squares."""
        return min(GEMV_THREADS, self.limits.threads_per_block)

    @property
    def outputs(self) -> int:
        """Return the columns of y that a GEMV thread computes: one in narrow linears, else two."""
        return 1 if self.spec.gated or self.spec.out_features <= 2048 else 2


@dataclass(frozen=True, slots=True)
class Operands:
    """TIR buffers of a fused linear."""

    x: Any  # [m, K]
    weights: Weights
    y: Any  # [m, width]
    norm: Any = None  # [K]
    residual: Any = None  # [m, width]
    inverse: Any = None  # [m], 1 / root mean square of each row; a launch before the GEMM writes it


def inverses_of(plan: LinearTiling, x: Any, rows: Sequence[Any], thread: Any) -> list[Any]:
    """Emit 1 / root mean square of rows of x, by the same operations in every kernel."""
    assert plan.spec.norm_eps is not None
    loads: list[Load] = [lambda k, row=row: e.load(x, row, k) for row in rows]
    width, eps = plan.spec.in_features, plan.spec.norm_eps
    return inverses_rms(loads, width, thread, plan.gemv_threads, eps, plan.limits)


def eight(plan: LinearTiling, tensors: Operands, row: Any, inverse: Any, k: Any) -> list[Any]:
    """Emit the load of x[row, k : k + 8], normalized if `inverse` is given; 0 beyond K."""
    if tensors.weights.full_groups:
        x = [v for half in (0, 4) for v in e.vector(tensors.x, row, k + half)]
        if inverse is None:
            return x
        w = [v for half in (0, 4) for v in e.vector(tensors.norm, k + half)]
        return [e.let(a * inverse * b) for a, b in zip(x, w, strict=True)]
    return [e.let(one(plan, tensors, row, inverse, k + i)) for i in range(WORD)]


def one(plan: LinearTiling, tensors: Operands, row: Any, inverse: Any, k: Any) -> Any:
    """Emit the load of x[row, k], normalized if `inverse` is given; 0 beyond K."""
    x = e.load(tensors.x, row, k)
    if inverse is not None:
        x = x * inverse * tensors.norm[k]
    if tensors.weights.full_groups:
        return x
    return T.if_then_else(k < plan.spec.in_features, x, T.float32(0))


def epilogue(plan: LinearTiling, tensors: Operands, row: Any, column: Any, sums: list[Any]) -> None:
    """Emit the store of y[row, column], from the linear's sums (two if gated)."""
    value = gated(*sums) if plan.spec.gated else sums[0]
    if plan.spec.residual:
        value = tensors.residual[row, column] + value
    e.store(tensors.y, value, row, column)

"""y = x W^T from portable weights, with what stands before and after it, in one launch.

There is a matrix-vector kernel for few rows (`few_rows`) and a tiled one for many (`many_rows`). A
row has the same bits from both, because both add in one order, which K alone gives. The groups of
32 columns are dealt to `lanes`: group i to lane i mod lanes. Within a group the columns are added
in ascending order, each by one fused multiply-add; 4-bit groups start at zero, and are multiplied
by their scale as they are added to the lane's sum. Then come the lanes' sums in ascending order.

Where there are SIMD groups, each of the two has an order of its own: few rows add the lanes' sums
as a tree in registers, many rows multiply matrices (`simdgroups/`).
"""

from __future__ import annotations

from typing import Any

from tvm.tirx import PrimFunc

from ..kernel_set import FusedKernel
from ..specs import FusedLinearSpec, LinearSpec
from . import emit as e
from .cooperative import many_rows as cooperative
from .few_rows import launch_few_rows
from .limits import GpuLimits
from .linear_plan import Operands, Plan
from .many_rows import launch_many_rows
from .simdgroups import many_rows as simdgroups
from .waves import many_rows as waves
from .weights import Weights, stored_parameters

FEW_ROWS = 8  # up to so many go to `few_rows`
ROWS_TOGETHER = 4  # rows of a block of `few_rows`, if there is more than one


def fused_linear(spec: FusedLinearSpec, limits: GpuLimits) -> FusedKernel:
    """See `KernelSet.fused_linear`."""
    scratch = ((("m",), "float32"),) if spec.norm_eps is not None else ()
    func = e.prim_func(parameters(spec), lambda b, s: emit(spec, limits, operands(spec, b), s["m"]))
    return FusedKernel(compute=func, scratch=scratch)


def linear(spec: LinearSpec, limits: GpuLimits) -> PrimFunc:
    """(x [m, K], *stored, y [m, N])."""
    return fused_linear(fused(spec), limits).compute


def fused(spec: LinearSpec) -> FusedLinearSpec:
    """`spec` with nothing before or after it."""
    return FusedLinearSpec(
        out_features=spec.out_features,
        in_features=spec.in_features,
        scheme=spec.scheme,
        scale_dtype=spec.scale_dtype,
        group=spec.group,
    )


def parameters(spec: FusedLinearSpec) -> list[e.Parameter]:
    """Of the fused linear's PrimFunc, in order."""
    k, y = spec.in_features, ("m", spec.width)
    normed, residual = spec.norm_eps is not None, spec.residual
    return [
        ("x", ("m", k), spec.x_dtype),
        *([("norm", (k,), "float32")] if normed else []),
        *stored_parameters(spec.linear()),
        *([("residual", y, "float32")] if residual else []),
        ("y", y, spec.y_dtype),
        *([("inverse", ("m",), "float32")] if normed else []),
    ]


def operands(spec: FusedLinearSpec, buffers: dict[str, Any]) -> Operands:
    """The buffers by what they are."""
    stored = tuple(buffers[name] for name, _, _ in stored_parameters(spec.linear()))
    return Operands(
        buffers["x"],
        Weights(spec.linear(), stored),
        buffers["y"],
        *(buffers.get(name) for name in ("norm", "residual", "inverse")),
    )


def emit(spec: FusedLinearSpec, limits: GpuLimits, tensors: Operands, m: Any) -> None:
    """Emit all kernels; the host chooses by the number of rows."""
    plan = Plan.of(spec, limits)
    launch_many = launch_many_rows
    if limits.simdgroups:
        launch_many = simdgroups.launch_many_rows
    elif limits.wave_matrices and waves.fits(spec):
        launch_many = waves.launch_many_rows
    elif limits.cooperative_matrices and cooperative.fits(spec):
        launch_many = cooperative.launch_many_rows
    e.choose(
        m <= FEW_ROWS,
        lambda: e.choose(
            m <= 1,
            lambda: launch_few_rows(plan, tensors, m, 1),
            lambda: launch_few_rows(plan, tensors, m, ROWS_TOGETHER),
        ),
        lambda: launch_many(plan, tensors, m),
    )

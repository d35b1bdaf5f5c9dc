"""y = x W^T from portable weights, with fused prologue (norm) and epilogue (gate, residual).

Decode runs a GEMV (`gemv`), prefill a tiled GEMM (`gemm`). A row has the same bits from both,
because both add in an order that depends on K alone. Groups of 32 columns are distributed over
`lanes`: lane i mod lanes has group i. Inside a group the columns are added in ascending order, each
by one fused multiply-add; the sum of a quantized group starts at zero, and is multiplied by its
scale when it is added to the lane's sum. Finally the lanes' sums are added in ascending order.

On targets with SIMD groups the two kernels have different orders: the GEMV adds the lanes' sums as
a tree in registers, the GEMM multiplies matrices (`simdgroups/`).
"""

from __future__ import annotations

from typing import Any

from tvm.tirx import PrimFunc

from wherry.ops import FusedLinearSpec, LinearSpec

from ..kernel_set import FusedKernel
from . import emit as e
from .block_weights import matrix
from .cooperative import gemm as cooperative
from .gemm import launch_gemm
from .gemv import launch_gemv
from .limits import GpuLimits
from .linear_plan import LinearTiling, Operands
from .simdgroups import gemm as simdgroups
from .waves import gemm as waves
from .weights import fits_float16, stored_parameters

GEMV_ROWS = 8  # largest batch that uses the GEMV
ROWS_TOGETHER = 4  # rows of a GEMV block, if there is more than one row


def fused_linear(spec: FusedLinearSpec, limits: GpuLimits) -> FusedKernel:
    """Return the kernel of a linear with fused norm and epilogue; see `KernelSet.fused_linear`."""
    scratch = ((("m",), "float32"),) if spec.norm_eps is not None else ()
    func = e.prim_func(parameters(spec), lambda b, s: emit(spec, limits, operands(spec, b), s["m"]))
    return FusedKernel(compute=func, scratch=scratch)


def linear(spec: LinearSpec, limits: GpuLimits) -> PrimFunc:
    """Return the PrimFunc of a linear (x [m, K], *stored, y [m, N])."""
    return fused_linear(fused(spec), limits).compute


def fused(spec: LinearSpec) -> FusedLinearSpec:
    """Return `spec` as a fused linear without prologue and epilogue."""
    return FusedLinearSpec(
        out_features=spec.out_features,
        in_features=spec.in_features,
        scheme=spec.scheme,
        scale_dtype=spec.scale_dtype,
        group=spec.group,
    )


def parameters(spec: FusedLinearSpec) -> list[e.Parameter]:
    """Return the parameters of the fused linear's PrimFunc, in order."""
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
    """Return the PrimFunc's buffers as `Operands`."""
    stored = tuple(buffers[name] for name, _, _ in stored_parameters(spec.linear()))
    return Operands(
        buffers["x"],
        matrix(spec.linear(), stored),
        buffers["y"],
        *(buffers.get(name) for name in ("norm", "residual", "inverse")),
    )


def emit(spec: FusedLinearSpec, limits: GpuLimits, tensors: Operands, m: Any) -> None:
    """Emit GEMV and GEMM kernels; the host chooses by the number of rows."""
    plan = LinearTiling.of(spec, limits)
    launch_tiled = launch_gemm
    if limits.simdgroups:
        launch_tiled = simdgroups.launch_gemm
    elif limits.wave_matrices and fits_float16(spec):
        launch_tiled = waves.launch_gemm
    elif limits.cooperative_matrices and fits_float16(spec):
        launch_tiled = cooperative.launch_gemm
    e.choose(
        m <= GEMV_ROWS,
        lambda: e.choose(
            m <= 1,
            lambda: launch_gemv(plan, tensors, m, 1),
            lambda: launch_gemv(plan, tensors, m, ROWS_TOGETHER),
        ),
        lambda: launch_tiled(plan, tensors, m),
    )

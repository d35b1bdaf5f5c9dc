"""Linears with what stands before and after them, on devices against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import FusedLinearSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from .test_cpu_linear import portable

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})
ROWS = 70  # more than a tile
SINGLE, HALF = "float32", "float16"
CASES = {  # N, K, scheme, dtype of scales, norm, gated, residual, dtypes of x and y
    "norm": (200, 96, "q4", "float32", True, False, False, SINGLE, HALF),
    "norm, rows not aligned": (36, 44, "f32", None, True, False, False, SINGLE, SINGLE),
    "norm and gate": (2 * 84, 64, "q4", "float16", True, True, False, SINGLE, HALF),
    "gate": (2 * 5, 40, "f16", None, False, True, False, HALF, HALF),
    "residual": (70, 1088, "q4", "float32", False, False, True, HALF, SINGLE),
    "wide": (2100, 33, "f32", None, True, False, True, SINGLE, SINGLE),
}
BOUND = {SINGLE: 2e-6, HALF: 4e-4}  # of the root mean square; float16 rounds by up to 2^-11


def spec_of(case):
    n, k, scheme, scale_dtype, normed, gated, residual, x_dtype, y_dtype = case
    return FusedLinearSpec(
        out_features=n,
        in_features=k,
        scheme=scheme,
        scale_dtype=scale_dtype,
        norm_eps=1e-5 if normed else None,
        gated=gated,
        residual=residual,
        x_dtype=x_dtype,
        y_dtype=y_dtype,
    )


def expected(spec, x, weight, norm, residual):
    x = x.astype("float64")
    if spec.norm_eps is not None:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + spec.norm_eps) * norm
    y = x @ weight.T.astype("float64")
    if spec.gated:
        gate, up = np.split(y, 2, -1)
        y = gate / (1 + np.exp(-gate)) * up
    return y + residual if spec.residual else y


def fused_linear(build, kernels, spec, rng):
    """What runs some of ROWS random rows through the spec's kernel, and what all of them give."""
    n, k = spec.out_features, spec.in_features
    kernel = kernels.fused_linear(spec)
    compute = build(kernel.compute)
    stored, weight = portable(rng, n, k, spec.scheme, spec.scale_dtype)
    x = rng.standard_normal((ROWS, k)).astype(spec.x_dtype)
    norm = rng.uniform(0.5, 2, k).astype("float32")
    r = rng.standard_normal((ROWS, spec.width)).astype("float32")

    def run(rows):
        y = np.full((len(rows), spec.width), np.nan, spec.y_dtype)
        scratch = [np.full(len(rows), np.nan, "float32") for _ in kernel.scratch]
        before = [norm] if spec.norm_eps else []
        behind = [r[rows]] if spec.residual else []
        inputs = [x[rows], *before, *stored, *behind]
        return compute(*inputs, y, *scratch)[len(inputs)]

    return run, expected(spec, x, weight, norm, r)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.by_day("opencl-norm", "vulkan-residual", "metal-norm and gate")
def test_fused_linear(build, case):
    spec = spec_of(CASES[case])
    rng = np.random.default_rng(spec.out_features + spec.in_features)
    run, exact = fused_linear(build, KERNELS, spec, rng)
    y = run(np.arange(ROWS))
    assert np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2)) < BOUND[spec.y_dtype]
    # One row, a few and many go to different kernels: the same bits.
    for some in ([3], [0, 69, 5], range(20, 28), range(61, 70), rng.permutation(ROWS)):
        assert np.array_equal(run(np.array(some)), y[np.array(some)])
    assert run(np.arange(0)).shape == (0, spec.width)

"""Kernels for Apple's SIMD groups: their MSL, run by an emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import FusedLinearSpec, RMSNormSpec
from wherry.targets.kernels.gpu import GpuKernels
from wherry.targets.kernels.gpu.simdgroups import plan
from wherry.targets.target import find

from ..support import metal
from .test_device_experts import CASES as EXPERTS
from .test_device_experts import expert_linear
from .test_fused_linear import BOUND, ROWS, fused_linear, spec_of
from .test_gpu_sources import USUAL, source

pytestmark = pytest.mark.cpu
KERNELS = find("metal").kernels.kernels
FEW = 8  # so many rows have a kernel of their own
SINGLE, HALF = "float32", "float16"
CASES = {  # N, K, scheme, dtype of scales, norm, gated, residual, dtypes of x and y
    "4 bits, norm and gate": (2 * 84, 64, "q4", HALF, True, True, False, SINGLE, HALF),
    "4 bits, residual": (70, 1088, "q4", SINGLE, False, False, True, HALF, SINGLE),
    "8 bits": (200, 96, "q8", HALF, False, False, False, HALF, SINGLE),
    "halves": (66, 128, "f16", None, True, False, False, SINGLE, HALF),
    "rows not aligned": (36, 44, "f32", None, True, False, True, SINGLE, SINGLE),
    "8 bits, gate": (2 * 40, 160, "q8", SINGLE, True, True, False, SINGLE, HALF),
    "4 bits, not aligned": (20, 40, "q4", HALF, False, False, False, SINGLE, SINGLE),
}
BY_DAY = ("4 bits, norm and gate",)  # and whole models, in test_metal.py


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in BY_DAY else pytest.mark.nightly) for c in CASES]
)
def test_fused_linear(case, monkeypatch):
    monkeypatch.setattr(plan, "_ENOUGH_BLOCKS", 1)  # large tiles, too
    spec = spec_of(CASES[case])
    rng = np.random.default_rng(spec.out_features + spec.in_features)
    assert plan.tiles(spec)[0] == plan.SMALL.rows < ROWS
    run, exact = fused_linear(metal.build, KERNELS, spec, rng)
    many = run(np.arange(ROWS))
    few = np.concatenate([run(np.arange(i, min(i + FEW, ROWS))) for i in range(0, ROWS, FEW)])
    for y in (many, few):
        assert np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2)) < BOUND[spec.y_dtype]
    # GEMV and GEMM add in different orders; in each, a row has its bits.
    for some in ([3], [0, 69, 5], range(60, 68)):
        assert np.array_equal(run(np.array(some)), few[np.array(some)])
    for some in (range(9), range(20, 53), rng.permutation(ROWS)):
        assert np.array_equal(run(np.array(some)), many[np.array(some)])
    assert run(np.arange(0)).shape == (0, spec.width)


@pytest.mark.nightly
@pytest.mark.parametrize("spec", EXPERTS, ids=lambda s: f"{s.out_features}x{s.in_features}")
def test_experts(spec):
    run, y = expert_linear(metal.build, KERNELS, spec)
    few = np.concatenate([run(slice(i, i + 1)) for i in range(len(y))])
    np.testing.assert_allclose(few, y, rtol=1e-5, atol=1e-5)
    assert np.array_equal(run(slice(4, 6)), few[4:6])
    order = np.random.default_rng(1).permutation(len(y))
    assert np.array_equal(run(order), y[order])


@pytest.mark.parametrize("d", [pytest.param(5, marks=pytest.mark.nightly), 1000])
def test_norms(d):
    rng = np.random.default_rng(d)
    norm = metal.build(KERNELS.rms_norm(RMSNormSpec(dim=d, eps=1e-5)))
    x, w = rng.standard_normal((20, d)).astype("float32"), rng.standard_normal(d).astype("float32")
    y = norm(x, w, np.full((20, d), np.nan, "float32"))[-1]
    exact = x.astype("float64")
    exact = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y, exact, rtol=2e-6, atol=1e-6)
    assert np.array_equal(norm(x[7:9], w, np.zeros((2, d), "float32"))[-1], y[7:9])


@pytest.mark.nightly
def test_one_row_waits_twice():
    """For the sums of its squares; the portable kernel has a tree of barriers for them."""
    form = {"out_features": 64, "in_features": 64, "scheme": "q4", "scale_dtype": HALF}
    spec = FusedLinearSpec(**form, norm_eps=1e-5)
    counts = []
    for kernels in (GpuKernels(USUAL, {}), KERNELS):
        first = source(kernels.fused_linear(spec).compute, "metal").split("kernel void")[1]
        counts.append(first.count("threadgroup_barrier"))
    assert counts == [10, 2]

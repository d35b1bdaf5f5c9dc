"""Arm's int8 matrix instructions and table lookups, run by an emulator: the bits of others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.quant.scheme import record
from wherry.targets.kernels import LinearSpec
from wherry.targets.kernels.cpu import CpuKernels, Isa

from ..support.aarch64 import require_tools
from ..support.arm_kernels import ArmMachine
from ..support.random_blocks import random_stored
from .test_cpu_linear import packed, portable

pytestmark = pytest.mark.cpu

ISA = Isa(lanes=4, registers=32, fma=True, dot="i8mm")
HEIGHTS = (1, 2, 7, 8, 9, 31)  # by rows, and in pairs with rests of all heights


@pytest.fixture(scope="module")
def cores(tmp_path_factory):
    """The same kernels in dot products and in pairs."""
    require_tools()
    folder = tmp_path_factory.mktemp("arm")
    dotprod = ArmMachine(replace(ISA, dot="dotprod"), ("dotprod",), "cortex-a76", folder)
    return dotprod, ArmMachine(ISA, ("dotprod", "i8mm"), "max", folder)


def spec_of(n, k, scheme, scale_dtype):
    return LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype)


@pytest.mark.parametrize(
    ("n", "k", "scheme", "scale_dtype"),
    [
        (40, 172, "q4", "float16"),
        (40, 172, "q8", "float16"),
        pytest.param(344, 64, "q4", "float32", marks=pytest.mark.nightly),
        pytest.param(24, 8, "q8", "float16", marks=pytest.mark.nightly),
        pytest.param(16, 4096, "q4", "float16", marks=pytest.mark.nightly),
        pytest.param(16, 4096, "q8", "float32", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.by_day("q8")
def test_pairs_have_the_bits_of_the_dot_product(cores, here, n, k, scheme, scale_dtype):
    rng = np.random.default_rng(n + k)
    spec = spec_of(n, k, scheme, scale_dtype)
    stored, _ = portable(rng, n, k, scheme, scale_dtype)
    stored[0][:8] = {"q4": 0xFFFFFFFF, "q8": 0xFEFEFEFE}[scheme]  # the largest
    stored[0][8:16] = 0
    x = rng.standard_normal((70, k)).astype("float32")
    x[:2], x[2:4] = 1.0, -1.0  # rows of the largest sums
    x[4], x[5], x[6] = 0.0, x[5] * 1e18, x[6] * 1e-15  # and of extreme scales
    weights = packed(here, CpuKernels(here.isa).linear(spec), stored)
    results = []
    for core in cores:
        linear = CpuKernels(core.isa).linear(spec)
        assert linear.weights == CpuKernels(here.isa).linear(spec).weights
        compute = core.build(linear.compute)

        def run(rows, compute=compute):
            return compute(rows, *weights, np.full((len(rows), n), np.nan, "float32"))[-1]

        results.append(run(x))
        for m in HEIGHTS:
            start = 70 - m - m % 5
            assert np.array_equal(run(x[start : start + m]), results[-1][start : start + m])
    assert np.isfinite(results[0]).all()
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    "name",
    [
        "TCQ3",
        *(pytest.param(x, marks=pytest.mark.nightly) for x in ("TCQ2", "IQ2_S", "IQ4_XS")),
    ],
)
def test_values_of_tables(cores, here, name):
    """Lookups in tables of 16 and 64 bytes, which NEON has of its own: x86's bits."""
    dotprod, _ = cores
    scheme, n, k = record(name), 40, 512
    spec = LinearSpec(out_features=n, in_features=k, **scheme.kernel_spec())
    weights = packed(here, CpuKernels(here.isa).linear(spec), random_stored(scheme, n, k).values())
    x = np.random.default_rng(1).standard_normal((9, k)).astype("float32")
    results = []
    for core in (here, dotprod):
        compute = core.build(CpuKernels(core.isa).linear(spec).compute)
        results.append(compute(x, *weights, np.full((9, n), np.nan, "float32"))[-1])
    assert np.isfinite(results[0]).all()
    assert np.array_equal(*results)

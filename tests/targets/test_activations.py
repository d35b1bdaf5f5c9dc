"""Activations of a feed-forward: kernels of CPUs and devices against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wherry.targets.kernels import ActivationSpec
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from ..support.builders import builder

GPU = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=16384), {})
EXPECTED = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
}


def check(build, kernels, kind, gated, dim):
    rng = np.random.default_rng(dim)
    x = (4 * rng.standard_normal((5, dim * (2 if gated else 1)))).astype("float32")
    x[0, :6] = [0.0, -0.0, 30.0, -30.0, 1e4, -1e4]
    kernel = build(kernels.activation(ActivationSpec(dim=dim, kind=kind, gated=gated)))
    got = kernel(x, np.full((5, dim), np.nan, "float32"))[-1]
    expected = EXPECTED[kind](x[:, :dim].astype("float64")) * (x[:, dim:] if gated else 1)
    # Of the error function's 1.5e-7, times two numbers of about 10.
    np.testing.assert_allclose(got, expected, rtol=3e-6, atol=1e-5)


@pytest.mark.cpu
@pytest.mark.parametrize("kind", EXPECTED)
def test_on_cpus(here, kind):
    check(here.build, CpuKernels(here.isa), kind, kind == "gelu_tanh", 84)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", EXPECTED)
def test_on_devices(kind):
    check(builder("vulkan"), GPU, kind, kind in ("gelu", "gelu_tanh"), 84)

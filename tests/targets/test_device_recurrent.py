"""Operations with a recurrent state of GPUs on devices, or emulated, against NumPy."""

from __future__ import annotations

import pytest

from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from .recurrent_cases import (
    CONVS,
    DELTAS,
    DPLR,
    MAMBA,
    MAMBA2,
    RECURRENCES,
    check_conv,
    check_delta,
    check_dplr,
    check_mamba,
    check_mamba2,
    check_recurrence,
)

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})


@pytest.mark.parametrize("spec", CONVS, ids=lambda s: str(s.channels))
def test_short_conv(build, spec):
    check_conv(build, KERNELS, spec)


@pytest.mark.parametrize("spec", DELTAS, ids=lambda s: f"{s.key_dim}x{s.value_dim}")
@pytest.mark.by_day("opencl-8x16", "vulkan-32x32", "metal-6x20_0")
def test_gated_delta(build, spec):
    check_delta(build, KERNELS, spec)


@pytest.mark.parametrize("spec", MAMBA2, ids=lambda s: f"{s.state_dim}x{s.head_dim}")
def test_mamba2(build, spec):
    check_mamba2(build, KERNELS, spec)


@pytest.mark.parametrize("spec", MAMBA, ids=lambda s: f"{s.state_dim}x{s.channels}")
def test_mamba(build, spec):
    check_mamba(build, KERNELS, spec)


@pytest.mark.parametrize("spec", RECURRENCES, ids=lambda s: str(s.channels))
def test_linear_recurrence(build, spec):
    check_recurrence(build, KERNELS, spec)


@pytest.mark.parametrize("spec", DPLR, ids=lambda s: f"{s.key_dim}x{s.value_dim}")
def test_dplr(build, spec):
    check_dplr(build, KERNELS, spec)

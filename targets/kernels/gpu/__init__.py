"""Kernels of GPUs, from the portable layout of weights; one set for all APIs, with their limits."""

from .kernels import GpuKernels
from .limits import GpuLimits

__all__ = ["GpuKernels", "GpuLimits"]

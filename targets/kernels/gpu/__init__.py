"""Kernels of GPUs, from the portable layout of weights; one set for every API, by its limits."""

from .kernels import GpuKernels
from .limits import GpuLimits

__all__ = ["GpuKernels", "GpuLimits"]

"""GPU kernels over the portable weight layout: one set for all APIs, within each one's limits."""

from .kernels import GpuKernels
from .limits import GpuLimits

__all__ = ["GpuKernels", "GpuLimits"]

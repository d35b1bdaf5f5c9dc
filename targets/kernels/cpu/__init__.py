"""Kernels of CPUs: written for 16-lane panels, generated for the registers that a CPU has."""

from .isa import Isa, isa_from_features
from .kernels import CpuKernels

__all__ = ["CpuKernels", "Isa", "isa_from_features"]

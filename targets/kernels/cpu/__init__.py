"""Kernels of CPUs: written for 16-lane panels, generated for the vector registers of a CPU."""

from .isa import Isa, isa_from_features
from .kernels import CpuKernels

__all__ = ["CpuKernels", "Isa", "isa_from_features"]

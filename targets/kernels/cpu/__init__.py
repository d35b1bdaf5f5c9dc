"""CPU kernels: written for panels of 16 columns, generated for the CPU's vector registers."""

from .isa import Isa, isa_from_features
from .kernels import CpuKernels

__all__ = ["CpuKernels", "Isa", "isa_from_features"]

"""Linears on NVIDIA's tensor cores: CUDA C++ of our own, called from PrimFuncs like any other.

The PrimFunc has the launches, their choice by the number of rows, and memory; the body of a kernel
is one call of a function of the `.cuh` files, whose template arguments are the plan (`plan.py`).
"""

from .embedding import embedding
from .layout import fits
from .linear import fits_fused, fused_linear, linear

__all__ = ["embedding", "fits", "fits_fused", "fused_linear", "linear"]

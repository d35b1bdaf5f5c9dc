"""Linears, experts and attention on NVIDIA's tensor cores, in CUDA C++.

The PrimFunc has the launches, the host's choice among them by the number of rows, and the memory; a
kernel's body is one call of a function of the `.cuh` files, whose template arguments come from the
plan (`plan.py`).
"""

from .attention import fits as fits_attention
from .attention import paged_attention
from .embedding import embedding
from .experts import expert_linear
from .experts import fits as fits_experts
from .layout import BLOCKS, fits, grows
from .linear import fits_fused, fused_linear, linear

__all__ = [
    "BLOCKS",
    "embedding",
    "expert_linear",
    "fits",
    "fits_attention",
    "fits_experts",
    "fits_fused",
    "fused_linear",
    "grows",
    "linear",
    "paged_attention",
]

"""Kernels of the targets: what an operation is (`specs`) and who provides it (`kernel_set`)."""

from .kernel_set import KernelSet, PackedLinear
from .specs import (
    AttentionSpec,
    EmbeddingSpec,
    LinearSpec,
    RMSNormSpec,
    RopeAppendSpec,
    SwiGLUSpec,
)

__all__ = [
    "AttentionSpec",
    "EmbeddingSpec",
    "KernelSet",
    "LinearSpec",
    "PackedLinear",
    "RMSNormSpec",
    "RopeAppendSpec",
    "SwiGLUSpec",
]

"""Kernels of the targets: what an operation is (`specs`) and who provides it (`kernel_set`)."""

from .kernel_set import FusedKernel, KernelSet, PackedLinear
from .specs import (
    ActivationSpec,
    AttentionSpec,
    EmbeddingSpec,
    FusedLinearSpec,
    LayerNormSpec,
    LinearSpec,
    PagedAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    SwiGLUSpec,
)

__all__ = [
    "ActivationSpec",
    "AttentionSpec",
    "EmbeddingSpec",
    "FusedKernel",
    "FusedLinearSpec",
    "KernelSet",
    "LayerNormSpec",
    "LinearSpec",
    "PackedLinear",
    "PagedAttentionSpec",
    "RMSNormSpec",
    "RopeAppendSpec",
    "SwiGLUSpec",
]

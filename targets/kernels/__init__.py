"""Kernels of the targets: what an operation is (`specs`) and who provides it (`kernel_set`)."""

from .expert_specs import ExpertLinearSpec, RouteSpec
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
    "ExpertLinearSpec",
    "FusedKernel",
    "FusedLinearSpec",
    "KernelSet",
    "LayerNormSpec",
    "LinearSpec",
    "PackedLinear",
    "PagedAttentionSpec",
    "RMSNormSpec",
    "RopeAppendSpec",
    "RouteSpec",
    "SwiGLUSpec",
]

"""Hand-written kernels of all targets; `kernel_set` is their interface."""

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    FusedLinearSpec,
    LayerNormSpec,
    LinearSpec,
    PagedAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    SwiGLUSpec,
)

from .kernel_set import FusedKernel, KernelSet, PackedLinear

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

"""Finds kernels of a kernel set by the name and the spec of a tagged operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tvm.tirx import PrimFunc

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    BatchTableSpec,
    CandidatesSpec,
    ChoiceSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    FusedLinearSpec,
    LayerNormSpec,
    LinearSpec,
    PagedAttentionSpec,
    QkvAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    SwiGLUSpec,
)

from .kernel_set import FusedKernel, KernelSet, PackedLinear

Answer: TypeAlias = PrimFunc | PackedLinear | FusedKernel | None

# Optional kernels that fuse several operations.
FUSED: dict[str, Any] = {
    "fused_linear": FusedLinearSpec,
    "batch_table": BatchTableSpec,
    "paged_attention": PagedAttentionSpec,
    "qkv_attention": QkvAttentionSpec,
    "candidates": CandidatesSpec,
    "choice": ChoiceSpec,
}


class KernelsByName:
    """Looks an operation up in a `KernelSet`."""

    def __init__(self, kernels: KernelSet) -> None:
        self.kernels = kernels
        self._operations: dict[str, tuple[Any, Callable[[Any], Answer]]] = {
            "linear": (LinearSpec, kernels.linear),
            "embedding": (EmbeddingSpec, self._embedding),
            "layer_norm": (LayerNormSpec, kernels.layer_norm),
            "rms_norm": (RMSNormSpec, kernels.rms_norm),
            "add_rms_norm": (RMSNormSpec, kernels.add_rms_norm),
            "activation": (ActivationSpec, kernels.activation),
            "swiglu": (SwiGLUSpec, kernels.swiglu),
            "rope_append": (RopeAppendSpec, kernels.rope_append),
            "attention": (AttentionSpec, kernels.attention),
            "route": (RouteSpec, kernels.route),
            "expert_linear": (ExpertLinearSpec, kernels.expert_linear),
        }
        for op, record in FUSED.items():
            if hasattr(kernels, op):
                self._operations[op] = (record, getattr(kernels, op))

    def kernel(self, op: str, spec: str) -> Answer:
        """The kernel of `op`; None if the set has none. `spec` is JSON."""
        if op not in self._operations:
            return None
        record, lookup = self._operations[op]
        return lookup(record.from_json(spec))

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule any other PrimFunc."""
        return self.kernels.schedule(func)

    def _embedding(self, spec: EmbeddingSpec) -> PrimFunc | PackedLinear | None:
        """An embedding that shares the packed weights of the linear over the same table."""
        packed, compute = self.kernels.linear(spec.as_linear()), self.kernels.embedding(spec)
        if packed is None or compute is None:
            return None
        if isinstance(packed, PrimFunc):  # it reads the portable layout, and so does `compute`
            return compute
        if isinstance(packed, FusedKernel):
            assert packed.packed and packed.pack, "a linear alone is fused for its layout"
            return PackedLinear(weights=(packed.packed,), pack=packed.pack, compute=compute)
        return PackedLinear(weights=packed.weights, pack=packed.pack, compute=compute)

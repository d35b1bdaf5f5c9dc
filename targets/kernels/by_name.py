"""Finds the kernel of a tagged operation in a kernel set, by the tag's name and spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tvm.tirx import PrimFunc

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    BatchTableSpec,
    BiasedLinearSpec,
    CandidatesSpec,
    ChoiceSpec,
    DplrSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    FusedLinearSpec,
    GatedDeltaSpec,
    LayerNormSpec,
    LinearRecurrenceSpec,
    LinearSpec,
    Mamba2Spec,
    MambaSpec,
    PagedAttentionSpec,
    PoolSpec,
    QkvAttentionSpec,
    RaggedAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    ShortConvSpec,
    SwiGLUSpec,
)
from wherry.ops.blocks import FORMATS
from wherry.ops.record import AFFINE

from .kernel_set import FusedKernel, KernelSet, PackedLinear

Answer: TypeAlias = PrimFunc | PackedLinear | FusedKernel | None

# Fused operations that a kernel set may lack: name -> class of the spec.
FUSED: dict[str, Any] = {
    "biased_linear": BiasedLinearSpec,
    "fused_linear": FusedLinearSpec,
    "batch_table": BatchTableSpec,
    "paged_attention": PagedAttentionSpec,
    "qkv_attention": QkvAttentionSpec,
    "candidates": CandidatesSpec,
    "choice": ChoiceSpec,
}
# Other operations that a kernel set may lack; their references stay then.
OPTIONAL: dict[str, Any] = {"pool": PoolSpec, "ragged_attention": RaggedAttentionSpec}


class KernelsByName:
    """Looks up the kernel of an operation in a `KernelSet`."""

    def __init__(self, kernels: KernelSet) -> None:
        self.kernels = kernels
        # Block formats (wherry.ops.blocks) that the kernels read; the references read the others.
        self.blocks: frozenset[str] = getattr(kernels, "blocks", frozenset())
        # Those of them that are as fast in all steps as the schemes of our own.
        self.fast_blocks: frozenset[str] = getattr(kernels, "fast_blocks", self.blocks)
        # Those of them that packed weights have hardly more bits of.
        self.small_blocks: frozenset[str] = getattr(kernels, "small_blocks", self.fast_blocks)
        # Those that linears of experts read as fast.
        self.expert_blocks: frozenset[str] = getattr(kernels, "expert_blocks", self.fast_blocks)
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
            "short_conv": (ShortConvSpec, kernels.short_conv),
            "gated_delta": (GatedDeltaSpec, kernels.gated_delta),
            "mamba": (MambaSpec, kernels.mamba),
            "mamba2": (Mamba2Spec, kernels.mamba2),
            "linear_recurrence": (LinearRecurrenceSpec, kernels.linear_recurrence),
            "dplr": (DplrSpec, kernels.dplr),
        }
        for op, record in (FUSED | OPTIONAL).items():
            if hasattr(kernels, op):
                self._operations[op] = (record, getattr(kernels, op))

    def kernel(self, op: str, spec: str) -> Answer:
        """Return the kernel of `op` for the JSON `spec`; None: the kernel set has none."""
        if op not in self._operations:
            return None
        record, lookup = self._operations[op]
        read = record.from_json(spec)
        return lookup(read) if self._reads(read) else None

    def _reads(self, spec: Any) -> bool:
        """Return whether the kernels read weights as a spec stores them."""
        spec = spec.linear if isinstance(spec, QkvAttentionSpec) else spec
        scheme = getattr(spec, "scheme", None)
        if scheme not in FORMATS:
            return scheme != AFFINE
        columns = spec.dim if isinstance(spec, EmbeddingSpec) else spec.in_features
        return scheme in self.blocks and columns % 32 == 0

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule a PrimFunc that is no known operation."""
        return self.kernels.schedule(func)

    def _embedding(self, spec: EmbeddingSpec) -> PrimFunc | PackedLinear | None:
        """Return an embedding kernel that reads the packed weights of the linear over its table."""
        packed, compute = self.kernels.linear(spec.as_linear()), self.kernels.embedding(spec)
        if packed is None or compute is None:
            return None
        # the linear, and so the embedding, reads the portable layout
        if isinstance(packed, PrimFunc):
            return compute
        if isinstance(packed, FusedKernel):
            assert packed.packed and packed.pack, "a linear alone is fused for its layout"
            return PackedLinear(weights=(packed.packed,), pack=packed.pack, compute=compute)
        return PackedLinear(weights=packed.weights, pack=packed.pack, compute=compute)

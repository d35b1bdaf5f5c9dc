"""The kernel set of a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

from ..kernel_set import FusedKernel
from . import tensor_cores
from .attention import attention
from .batch_table import batch_table
from .candidates import MOST_VOCABULARY, candidates
from .choice import choice
from .elementwise import activation, embedding, swiglu
from .experts import expert_linear
from .limits import GpuLimits
from .linear import fused_linear, linear
from .norm import add_rms_norm, layer_norm, rms_norm
from .paged_attention import paged_attention
from .qkv_attention import qkv_attention
from .rope import rope_append
from .route import route
from .schedule import schedule


class GpuKernels:
    """A `KernelSet` for devices with blocks and threads.

    Args:
        limits: of a kernel launch.
        device: TVM's dict of the target, for the rules that schedule other PrimFuncs.
    """

    def __init__(self, limits: GpuLimits, device: Mapping[str, Any]) -> None:
        self.limits = limits
        self.device = device

    def linear(self, spec: LinearSpec) -> PrimFunc | FusedKernel:
        """All schemes, from the portable layout where tensor cores have none of their own."""
        if self.limits.tensor_cores and tensor_cores.fits(spec):
            return tensor_cores.linear(spec, self.limits.asked_shared_bytes)
        return linear(spec, self.limits)

    def fused_linear(self, spec: FusedLinearSpec) -> FusedKernel:
        """All schemes, from the portable layout where tensor cores have none of their own."""
        if self.limits.tensor_cores and tensor_cores.fits_fused(spec):
            return tensor_cores.fused_linear(spec, self.limits.asked_shared_bytes)
        return fused_linear(spec, self.limits)

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc:
        """All schemes, as `linear` reads them."""
        if self.limits.tensor_cores and tensor_cores.fits(spec.as_linear()):
            return tensor_cores.embedding(spec, self.limits)
        return embedding(spec, self.limits)

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc:
        """Any width."""
        return rms_norm(spec, self.limits)

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc:
        """Any width."""
        return add_rms_norm(spec, self.limits)

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc:
        """Any width."""
        return layer_norm(spec, self.limits)

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc:
        """Any width."""
        return swiglu(spec, self.limits)

    def activation(self, spec: ActivationSpec) -> PrimFunc:
        """Any width."""
        return activation(spec, self.limits)

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc:
        """Any head."""
        return rope_append(spec, self.limits)

    def attention(self, spec: AttentionSpec) -> PrimFunc:
        """Any head."""
        return attention(spec, self.limits)

    def route(self, spec: RouteSpec) -> PrimFunc:
        """Any number of experts that fit into shared memory."""
        return route(spec, self.limits)

    def expert_linear(self, spec: ExpertLinearSpec) -> PrimFunc | FusedKernel | None:
        """All schemes, from the portable layout where tensor cores have none of their own.

        None with float16 activations there.
        """
        if self.limits.tensor_cores and tensor_cores.fits_experts(spec):
            return tensor_cores.expert_linear(spec)
        if "float16" in (spec.x_dtype, spec.y_dtype):
            return None
        return expert_linear(spec, self.limits)

    def batch_table(self, spec: BatchTableSpec) -> FusedKernel:
        """(positions [n], sequences [n], query_indptr and page_indptr [r + 1], page_ids, table)."""
        return batch_table(spec, self.limits)

    def paged_attention(self, spec: PagedAttentionSpec) -> FusedKernel | None:
        """(qkv [n, qkv_heads, e], table, query_indptr, norms of q and k if any, pages, out).

        None with sinks: rotation and attention are two launches then.
        """
        if self.limits.tensor_cores and tensor_cores.fits_attention(spec):
            return tensor_cores.paged_attention(spec, self.limits)
        return None if spec.sinks else paged_attention(spec, self.limits)

    def qkv_attention(self, spec: QkvAttentionSpec) -> FusedKernel | None:
        """(x, norm if any, *stored, table, query_indptr, norms [2, e] if any, pages, out).

        None where launches are cheap: as few blocks as KV heads cost more than a launch saves.
        """
        if spec.attention.sinks or not self.limits.few_launches:
            return None
        return qkv_attention(spec, self.limits)

    def candidates(self, spec: CandidatesSpec) -> FusedKernel | None:
        """(logits [m, vocab], scales [m], result u32 [m, 2 count + 4]).

        None for vocabularies above the limit of the error bound.
        """
        return candidates(spec, self.limits) if spec.vocab <= MOST_VOCABULARY else None

    def choice(self, spec: ChoiceSpec) -> FusedKernel:
        """(packed u32 [m, 2 count + 4], how [m, 5], result u32 [m, 2 count + 5])."""
        return choice(spec, self.limits)

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """See `schedule`."""
        return schedule(func, self.device)

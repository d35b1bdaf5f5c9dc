"""The kernel set of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.tirx import PrimFunc

from wherry.ops import (
    INTEGERS,
    ActivationSpec,
    AttentionSpec,
    BatchTableSpec,
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
    QkvAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    ShortConvSpec,
    SwiGLUSpec,
)
from wherry.ops.blocks import FORMATS, FP8

from ..kernel_set import FusedKernel
from . import tensor_cores
from .attention import attention
from .batch_table import batch_table
from .candidates import MOST_VOCABULARY, candidates
from .choice import choice
from .dplr import dplr
from .elementwise import activation, embedding, swiglu
from .experts import expert_linear
from .gated_delta import gated_delta
from .limits import GpuLimits
from .linear import fused_linear, linear, parameters
from .linear_recurrence import linear_recurrence
from .mamba import mamba, mamba2
from .norm import add_rms_norm, layer_norm, rms_norm
from .paged_attention import paged_attention
from .qkv_attention import qkv_attention
from .rope import rope_append
from .route import route
from .schedule import schedule
from .short_conv import short_conv
from .weights import stored_shapes


class GpuKernels:
    """The `KernelSet` of devices with blocks and threads.

    Args:
        limits: limits of a kernel launch.
        device: the target as TVM's dict, for the rules that schedule other PrimFuncs.
    """

    def __init__(self, limits: GpuLimits, device: Mapping[str, Any]) -> None:
        self.limits = limits
        self.device = device
        # Block formats that linears and embeddings read, see `KernelsByName`. Tensor cores have a
        # layout for some of them; long prompts take several times as long with the others there.
        self.blocks = frozenset(FORMATS)
        self.fast_blocks = frozenset(tensor_cores.BLOCKS) if limits.tensor_cores else self._fast()
        self.small_blocks = self.fast_blocks
        if limits.tensor_cores:
            self.small_blocks = frozenset(b for b in self.fast_blocks if not tensor_cores.grows(b))
        # A launch for experts binds four other tensors.
        self.expert_blocks = frozenset(
            name for name in self.fast_blocks if self._can_bind(4 + len(FORMATS[name].columns))
        )

    def linear(self, spec: LinearSpec) -> PrimFunc | FusedKernel:
        """Return the linear kernel, for every scheme.

        It reads the portable layout, unless tensor cores have a layout of their own.
        """
        if self.limits.tensor_cores and tensor_cores.fits(spec):
            return tensor_cores.linear(spec, self.limits.optin_shared_bytes, self.limits.warpgroups)
        return linear(spec, self.limits)

    def fused_linear(self, spec: FusedLinearSpec) -> FusedKernel | None:
        """Return the kernel of a linear with fused norm and epilogue, for every scheme.

        It reads the portable layout, unless tensor cores have a layout of their own. None if a
        launch would bind too many tensors: block formats have up to six.
        """
        if not self._can_bind(len(parameters(spec))):
            return None
        if self.limits.tensor_cores and tensor_cores.fits_fused(spec):
            return tensor_cores.fused_linear(
                spec, self.limits.optin_shared_bytes, self.limits.warpgroups
            )
        return fused_linear(spec, self.limits)

    def _fast(self) -> frozenset[str]:
        """Return the formats that are as fast as another encoding of the same size.

        Scales of FP8 may exceed float16, so matrix units of float16 do not read it.
        """
        units = self.limits.wave_matrices or self.limits.cooperative_matrices
        return self.blocks - frozenset(FP8) if units else self.blocks

    def _can_bind(self, count: int) -> bool:
        """Return whether a launch may bind `count` tensors."""
        most = self.limits.storage_buffers
        return most is None or count <= most

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc:
        """Return the embedding kernel, for every scheme, over the weights that `linear` reads."""
        if self.limits.tensor_cores and tensor_cores.fits(spec.as_linear()):
            return tensor_cores.embedding(spec, self.limits)
        return embedding(spec, self.limits)

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc:
        """Return the RMSNorm kernel, for any width."""
        return rms_norm(spec, self.limits)

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc:
        """Return the kernel of a residual addition with RMSNorm, for any width."""
        return add_rms_norm(spec, self.limits)

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc:
        """Return the LayerNorm kernel, for any width."""
        return layer_norm(spec, self.limits)

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc:
        """Return the SwiGLU kernel, for any width."""
        return swiglu(spec, self.limits)

    def activation(self, spec: ActivationSpec) -> PrimFunc:
        """Return the kernel of an activation function, for any width."""
        return activation(spec, self.limits)

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc:
        """Return the RoPE-append kernel, for any head size."""
        return rope_append(spec, self.limits)

    def attention(self, spec: AttentionSpec) -> PrimFunc:
        """Return the attention kernel, for any head size."""
        return attention(spec, self.limits)

    def route(self, spec: RouteSpec) -> PrimFunc:
        """Return the kernel that chooses experts; their number must fit into shared memory."""
        return route(spec, self.limits)

    def expert_linear(self, spec: ExpertLinearSpec) -> PrimFunc | FusedKernel | None:
        """Return the expert linear kernel, for every scheme.

        It reads the portable layout, unless tensor cores have a layout of their own. None with
        float16 activations and the portable layout, and for block formats if a launch would bind
        too many tensors.
        """
        bound = 4 + spec.bias + spec.residual + len(stored_shapes(spec.linear()))
        if spec.scheme in FORMATS and not self._can_bind(bound):
            return None
        if self.limits.tensor_cores and tensor_cores.fits_experts(spec):
            return tensor_cores.expert_linear(spec)
        if "float16" in (spec.x_dtype, spec.y_dtype):
            return None
        return expert_linear(spec, self.limits)

    def short_conv(self, spec: ShortConvSpec) -> PrimFunc:
        """Return the kernel of a short causal convolution, for any sizes."""
        return short_conv(spec, self.limits)

    def gated_delta(self, spec: GatedDeltaSpec) -> PrimFunc:
        """Return the kernel of the gated delta rule, for any sizes."""
        return gated_delta(spec, self.limits)

    def mamba(self, spec: MambaSpec) -> PrimFunc:
        """Return the kernel of Mamba's selective scan, for any sizes."""
        return mamba(spec, self.limits)

    def mamba2(self, spec: Mamba2Spec) -> PrimFunc:
        """Return the kernel of Mamba-2's state space, for any sizes."""
        return mamba2(spec, self.limits)

    def linear_recurrence(self, spec: LinearRecurrenceSpec) -> PrimFunc:
        """Return the kernel of a linear recurrence, for any number of channels."""
        return linear_recurrence(spec, self.limits)

    def dplr(self, spec: DplrSpec) -> PrimFunc:
        """Return the kernel of a diagonal plus low-rank transition, for any sizes."""
        return dplr(spec, self.limits)

    def batch_table(self, spec: BatchTableSpec) -> FusedKernel:
        """Return the kernel that computes the batch table.

        (positions [n], sequences [n], query_indptr and page_indptr [r + 1], page_ids, table)
        """
        return batch_table(spec, self.limits)

    def paged_attention(self, spec: PagedAttentionSpec) -> FusedKernel | None:
        """Return the fused kernel of RoPE, append and attention; None with sinks or biases.

        (qkv [n, qkv_heads, e], table, query_indptr, positions of M-RoPE, last visible positions and
        norms of q and k if any, pages, out). Without, RoPE-append and attention are two launches.
        """
        if self.limits.tensor_cores and tensor_cores.fits_attention(spec):
            return tensor_cores.paged_attention(spec, self.limits)
        return None if spec.sinks or spec.reach else paged_attention(spec, self.limits)

    def qkv_attention(self, spec: QkvAttentionSpec) -> FusedKernel | None:
        """Return the fused kernel of the qkv linear, RoPE, append and attention.

        (x, norm if any, *stored, table, query_indptr, norms [2, e] if any, pages, out). None where
        launches are cheap: as few blocks as KV heads cost more than a launch saves.
        """
        if spec.attention.sinks or spec.attention.reach or not self.limits.few_launches:
            return None
        if spec.attention.axes:
            return None  # it would bind too many tensors
        if spec.attention.kv_dtype in INTEGERS:
            return None  # the scales of a key need all of it before any of its elements is stored
        if spec.linear.scheme in FORMATS and self.limits.storage_buffers is not None:
            return None  # it would bind too many tensors
        return qkv_attention(spec, self.limits)

    def candidates(self, spec: CandidatesSpec) -> FusedKernel | None:
        """Return the kernel that finds sampling candidates.

        (logits [m, vocab], scales [m], result u32 [m, 2 count + 4]). None for vocabularies above
        the limit of the error bound.
        """
        return candidates(spec, self.limits) if spec.vocab <= MOST_VOCABULARY else None

    def choice(self, spec: ChoiceSpec) -> FusedKernel:
        """Return the kernel that draws tokens: (packed u32 [m, 2 count + 4], how [m, 5], result).

        The result is u32 [m, 2 count + 5].
        """
        return choice(spec, self.limits)

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule another PrimFunc by TVM's default rules for GPUs."""
        return schedule(func, self.device)

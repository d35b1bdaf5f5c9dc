"""The kernel set of CPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tvm.tirx import PrimFunc

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    BiasedLinearSpec,
    DplrSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    GatedDeltaSpec,
    LayerNormSpec,
    LinearRecurrenceSpec,
    LinearSpec,
    Mamba2Spec,
    MambaSpec,
    PoolSpec,
    RaggedAttentionSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    ShortConvSpec,
    SwiGLUSpec,
)
from wherry.ops.blocks import FORMATS
from wherry.targets.kernels.kernel_set import PackedLinear

from .attention import attention
from .block_layout import SUPPORTED
from .block_linear import block_embedding, block_linear
from .dplr import dplr
from .elementwise import activation, swiglu
from .embedding import embedding
from .epilogue import can_finish
from .experts import expert_linear
from .gated_delta import gated_delta
from .int_layout import LAYOUTS
from .isa import Isa
from .linear import float_linear
from .linear_recurrence import linear_recurrence
from .mamba import mamba, mamba2
from .norm import add_rms_norm, layer_norm, rms_norm
from .pool import pool
from .quantized_linear import quantized_linear
from .ragged_attention import ragged_attention
from .rope import rope_append
from .route import route
from .schedule import schedule
from .short_conv import short_conv


class CpuKernels:
    """The `KernelSet` of TVM's target kind llvm.

    Args:
        isa: the instruction set that every CPU of the target has.
        activations: what linears multiply 4-bit and 8-bit weights by. "int8" uses the CPU's int8
            dot product, if it has one, with a scale per 32 elements of a row; without one, and with
            "float", activations are float32. With "bf16" GEMM is in bfloat16 by the
            CPU's matrix units, if it has any, also of float weights, and GEMV as with "int8".
    """

    def __init__(self, isa: Isa, activations: Literal["int8", "float", "bf16"] = "int8") -> None:
        self.isa = replace(
            isa,
            float_rows=activations == "float",
            amx=isa.amx and activations == "bf16",
        )
        # Block formats that linears and embeddings read, see `KernelsByName`.
        self.blocks = SUPPORTED if self.isa.dot != "none" else frozenset[str]()

    def linear(self, spec: LinearSpec) -> PackedLinear | None:
        """Return the linear kernel, for every scheme; of block formats, those of `blocks`."""
        if spec.scheme in FORMATS:
            return block_linear(spec, self.isa) if spec.scheme in self.blocks else None
        if spec.scheme in LAYOUTS:
            return quantized_linear(spec, self.isa)
        return float_linear(spec, self.isa)

    def biased_linear(self, spec: BiasedLinearSpec) -> PackedLinear | None:
        """Return the linear kernel with a bias; None: block formats, or a part of a panel.

        It reads what `linear` packed.
        """
        known = spec.scheme not in FORMATS and can_finish(spec)
        return self.linear(spec) if known else None

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc | None:
        """Return the embedding kernel, which reads what `linear(spec.as_linear())` packed."""
        if spec.scheme in FORMATS:
            return block_embedding(spec, self.isa) if spec.scheme in self.blocks else None
        return embedding(spec, self.isa)

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Return the RMSNorm kernel, for any width."""
        return rms_norm(spec, self.isa)

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Return the kernel of a residual addition with RMSNorm, for any width."""
        return add_rms_norm(spec, self.isa)

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc:
        """Return the LayerNorm kernel, for any width."""
        return layer_norm(spec, self.isa)

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc | None:
        """Return the SwiGLU kernel, for any width."""
        return swiglu(spec, self.isa)

    def activation(self, spec: ActivationSpec) -> PrimFunc:
        """Return the kernel of an activation function, for any width."""
        return activation(spec, self.isa)

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc | None:
        """Return the RoPE-append kernel; None where `attention`, which reads its pages, is None."""
        return rope_append(spec, self.isa)

    def attention(self, spec: AttentionSpec) -> PrimFunc | None:
        """Return the attention kernel.

        It is None unless pages have 16 tokens and heads 4 * k elements.
        """
        return attention(spec, self.isa)

    def ragged_attention(self, spec: RaggedAttentionSpec) -> PrimFunc:
        """Return the kernel of bidirectional attention over the rows of a step."""
        return ragged_attention(spec, self.isa)

    def pool(self, spec: PoolSpec) -> PrimFunc:
        """Return the kernel of pooling, for any width."""
        return pool(spec, self.isa)

    def route(self, spec: RouteSpec) -> PrimFunc:
        """Return the kernel that chooses experts, for any number of experts."""
        return route(spec, self.isa)

    def expert_linear(self, spec: ExpertLinearSpec) -> PackedLinear | None:
        """Return the expert linear kernel, for every scheme; of block formats, those of `blocks`.

        It is None with a residual, which the next norm adds on CPUs.
        """
        if spec.residual or (spec.scheme in FORMATS and spec.scheme not in self.blocks):
            return None
        return expert_linear(spec, self.isa)

    def short_conv(self, spec: ShortConvSpec) -> PrimFunc:
        """Return the kernel of a short causal convolution, for any sizes."""
        return short_conv(spec, self.isa)

    def gated_delta(self, spec: GatedDeltaSpec) -> PrimFunc:
        """Return the kernel of the gated delta rule, for any sizes."""
        return gated_delta(spec, self.isa)

    def mamba(self, spec: MambaSpec) -> PrimFunc:
        """Return the kernel of Mamba's selective scan, for any sizes."""
        return mamba(spec, self.isa)

    def mamba2(self, spec: Mamba2Spec) -> PrimFunc:
        """Return the kernel of Mamba-2's state space, for any sizes."""
        return mamba2(spec, self.isa)

    def linear_recurrence(self, spec: LinearRecurrenceSpec) -> PrimFunc:
        """Return the kernel of a linear recurrence, for any number of channels."""
        return linear_recurrence(spec, self.isa)

    def dplr(self, spec: DplrSpec) -> PrimFunc:
        """Return the kernel of a diagonal plus low-rank transition, for any sizes."""
        return dplr(spec, self.isa)

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule another PrimFunc: vectorize, and use all threads where that pays."""
        return schedule(func)

"""The kernel set of a CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tvm.tirx import PrimFunc

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    LayerNormSpec,
    LinearSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    SwiGLUSpec,
)
from wherry.targets.kernels.kernel_set import PackedLinear

from .attention import attention
from .elementwise import activation, swiglu
from .embedding import embedding
from .experts import expert_linear
from .int_layout import LAYOUTS
from .isa import Isa
from .linear import float_linear
from .norm import add_rms_norm, layer_norm, rms_norm
from .quantized_linear import quantized_linear
from .rope import rope_append
from .route import route
from .schedule import schedule


class CpuKernels:
    """A `KernelSet` for target kind llvm.

    Args:
        isa: describes a CPU that the target has.
        activations: what linears with 4- and 8-bit weights multiply by. "int8" where the CPU has a
            dot product for it, with a scale for each 32 of a row; otherwise, and with "float",
            float32.
    """

    def __init__(self, isa: Isa, activations: Literal["int8", "float"] = "int8") -> None:
        self.isa = isa if activations == "int8" else replace(isa, dot="none")

    def linear(self, spec: LinearSpec) -> PackedLinear | None:
        """All schemes."""
        if spec.scheme in LAYOUTS:
            return quantized_linear(spec, self.isa)
        return float_linear(spec, self.isa)

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc | None:
        """All schemes; reads what `linear(spec.as_linear())` packed."""
        return embedding(spec, self.isa)

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Any width."""
        return rms_norm(spec, self.isa)

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Any width."""
        return add_rms_norm(spec, self.isa)

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc:
        """Any width."""
        return layer_norm(spec, self.isa)

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc | None:
        """Any width."""
        return swiglu(spec, self.isa)

    def activation(self, spec: ActivationSpec) -> PrimFunc:
        """Any width."""
        return activation(spec, self.isa)

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc | None:
        """None where `attention` is None, the only reader of its pages."""
        return rope_append(spec, self.isa)

    def attention(self, spec: AttentionSpec) -> PrimFunc | None:
        """None unless a page holds 16 tokens and a head a multiple of 4 elements."""
        return attention(spec, self.isa)

    def route(self, spec: RouteSpec) -> PrimFunc:
        """Any number of experts."""
        return route(spec, self.isa)

    def expert_linear(self, spec: ExpertLinearSpec) -> PackedLinear | None:
        """All schemes; None with a residual, which is fused with the following norm."""
        return None if spec.residual else expert_linear(spec, self.isa)

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Vectorise, and use all threads where that pays."""
        return schedule(func)

"""The interface of a target's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

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

# A dimension of scratch memory: a number, the name of a size of the call, or a function of all
# sizes. A linear has m rows, a linear of experts n rows and x rows of its first argument; attention
# has n rows of r sequences, which have p page ids.
Size = int | str | Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedLinear:
    """A linear whose weights are packed into a layout of the target."""

    weights: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each packed tensor
    pack: PrimFunc  # (*portable, *packed): runs once, when a model is first loaded
    compute: PrimFunc  # (x [m, K] float32, *packed, y [m, N] float32)
    inputs: int = 1  # arguments before the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedKernel:
    """Several operations in one PrimFunc, of few launches.

    Its last parameters are the outputs, and after them `scratch`: memory that the caller allocates.
    A batch table is all scratch and has no other output.
    """

    compute: PrimFunc
    scratch: tuple[tuple[tuple[Size, ...], str], ...] = ()
    joined: bool = False  # attention: the norms of q and k are one parameter, [2, e]
    # Linear: the stored weights become one tensor of this shape and dtype, by a function (*stored,
    # packed) that runs once, when a model is first loaded.
    packed: tuple[tuple[int, ...], str] | None = None
    pack: PrimFunc | None = None
    inputs: int = 1  # arguments before the weights


class KernelSet(Protocol):
    """Kernels of one target, by operation. None: the target has none; the reference stays.

    Every PrimFunc is private, writes its outputs (the last parameters), takes float32 activations
    (fused ones what their specs say) and int32 indices, and is marked `tirx.is_scheduled`. n, m, r,
    p and P are symbolic int64. A row's result is bit-equal whatever other rows are in the batch.
    """

    def linear(self, spec: LinearSpec) -> PackedLinear | PrimFunc | FusedKernel | None:
        """See `PackedLinear`; a PrimFunc (x, *portable, y) reads the weights as they are stored.

        A `FusedKernel` also has a weight layout of its own, and scratch memory.
        """
        ...

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc | None:
        """(tokens i32 [n], *packed, y [n, dim]); packed as `linear(spec.as_linear())` reads."""
        ...

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """(x [n, d], w [d], y [n, d])."""
        ...

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """(x [n, d], residual [n, d], w [d], sum [n, d], y [n, d]); y = norm(sum)."""
        ...

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc | None:
        """(x [n, d], w [d], b [d] if the spec has bias, y [n, d])."""
        ...

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc | None:
        """(gate_up [n, 2d], y [n, d])."""
        ...

    def activation(self, spec: ActivationSpec) -> PrimFunc | None:
        """(x [n, d], or [n, 2d] if gated, y [n, d])."""
        ...

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc | None:
        """Rotate, append to the cache in place, return q.

        (qkv [n, qkv_heads, e], positions [n], sequences [n], page_indptr [r + 1], page_ids [p],
        q_norm [e] and k_norm [e] if the spec has qk_norm_eps, pages kv_dtype [P, *page_shape],
        q_out [n, h, e]).
        """
        ...

    def attention(self, spec: AttentionSpec) -> PrimFunc | None:
        """Attend over the cache.

        (q [n, h, e], positions [n], sequences [n], query_indptr [r + 1], page_indptr [r + 1],
        page_ids [p], sinks [h] if the spec has them, pages kv_dtype [P, *page_shape],
        out [n, h, e]).
        """
        ...

    def route(self, spec: RouteSpec) -> PrimFunc | None:
        """Choose experts and sort all slots by expert, for `expert_linear` of the same set.

        (logits [n, E], bias [E] if the spec has it, ids i32 [n, K], weights [n, K],
        starts i32 [E + 1], slots i32 [n * K]).
        """
        ...

    def expert_linear(self, spec: ExpertLinearSpec) -> PackedLinear | PrimFunc | FusedKernel | None:
        """Multiply each slot by its expert's weights; a set has this and `route`, or neither.

        (x, ids, starts and slots if routed, weights [n, K] if combined, bias [E, N] if the spec has
        it, *packed or *portable, residual if the spec has it, y, scratch). None with a residual on
        CPUs, where an addition costs no launch, and with float16 if there is no such kernel.
        """
        ...

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule any other elementwise or reducing PrimFunc; others are returned unchanged."""
        ...

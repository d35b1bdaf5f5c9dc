"""The interface of a target's kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tvm.tirx import PrimFunc

from wherry.ops import (
    ActivationSpec,
    AttentionSpec,
    DplrSpec,
    EmbeddingSpec,
    ExpertLinearSpec,
    GatedDeltaSpec,
    LayerNormSpec,
    LinearRecurrenceSpec,
    LinearSpec,
    Mamba2Spec,
    MambaSpec,
    RMSNormSpec,
    RopeAppendSpec,
    RouteSpec,
    ShortConvSpec,
    SwiGLUSpec,
)

# A dimension of scratch memory: a number, the name of a size of the call, or a function of all
# sizes. A linear has the size m (its rows); an expert linear has n (its rows) and x (rows of its
# first argument); attention has n rows, r sequences, and p page ids.
Size = int | str | Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedLinear:
    """Kernels of a linear whose weights are packed into a layout of the target."""

    weights: tuple[tuple[tuple[int, ...], str], ...]  # shape and dtype of each packed tensor
    pack: PrimFunc  # (*portable, *packed): runs once, when a model is first loaded
    compute: PrimFunc  # (x [m, K] float32, *packed, y [m, N] float32)
    inputs: int = 1  # number of arguments before the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedKernel:
    """Kernel of several fused operations in one PrimFunc, with few launches.

    Its last parameters are the outputs, followed by `scratch`: memory that the caller allocates. A
    batch table has no other output than its scratch.
    """

    compute: PrimFunc
    scratch: tuple[tuple[tuple[Size, ...], str], ...] = ()
    joined: bool = False  # whether an attention takes the norms of q and k as one parameter [2, e]
    # Shape and dtype of a linear's packed weights, a single tensor that `pack` (*stored, packed)
    # computes once, when a model is first loaded; None: the kernel reads the stored tensors.
    packed: tuple[tuple[int, ...], str] | None = None
    pack: PrimFunc | None = None
    inputs: int = 1  # number of arguments before the weights


class KernelSet(Protocol):
    """Interface of a target's kernels, by operation.

    A method returns None if the target has no such kernel; the reference PrimFunc then stays. Every
    PrimFunc is private, writes its outputs (the last parameters), takes float32 activations (fused
    ones what their specs say) and int32 indices, and is marked `tirx.is_scheduled`. n, m, r, p and
    P are symbolic int64. A row's result is bit-equal whatever other rows are in the batch.
    """

    def linear(self, spec: LinearSpec) -> PackedLinear | PrimFunc | FusedKernel | None:
        """Return the kernel of a linear.

        A PrimFunc (x, *portable, y) reads the weights as they are stored; a `PackedLinear` or a
        `FusedKernel` has a weight layout of its own, the latter also scratch memory.
        """
        ...

    def embedding(self, spec: EmbeddingSpec) -> PrimFunc | None:
        """Return the PrimFunc of an embedding lookup (tokens i32 [n], *packed, y [n, dim]).

        Its weights are packed as `linear(spec.as_linear())` packs them.
        """
        ...

    def rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Return the PrimFunc of RMSNorm (x [n, d], w [d], y [n, d])."""
        ...

    def add_rms_norm(self, spec: RMSNormSpec) -> PrimFunc | None:
        """Return the PrimFunc of a residual addition with RMSNorm, y = norm(sum).

        (x [n, d], residual [n, d], w [d], sum [n, d], y [n, d])
        """
        ...

    def layer_norm(self, spec: LayerNormSpec) -> PrimFunc | None:
        """Return the PrimFunc of LayerNorm (x [n, d], w [d], b [d] if any, y [n, d])."""
        ...

    def swiglu(self, spec: SwiGLUSpec) -> PrimFunc | None:
        """Return the PrimFunc of SwiGLU (gate_up [n, 2d], y [n, d])."""
        ...

    def activation(self, spec: ActivationSpec) -> PrimFunc | None:
        """Return the PrimFunc of an activation (x [n, d], or [n, 2d] if gated, y [n, d])."""
        ...

    def rope_append(self, spec: RopeAppendSpec) -> PrimFunc | None:
        """Return the PrimFunc of RoPE and cache append: it appends k and v in place and writes q.

        (qkv [n, qkv_heads, e], positions [n], sequences [n], page_indptr [r + 1], page_ids [p],
        rope_positions [n, 3] if the spec has axes, q_norm [e] and k_norm [e] if it has qk_norm_eps,
        pages kv_dtype [P, *page_shape], q_out [n, h, e])
        """
        ...

    def attention(self, spec: AttentionSpec) -> PrimFunc | None:
        """Return the PrimFunc of attention over the paged cache.

        (q [n, h, e], positions [n], sequences [n], query_indptr [r + 1], page_indptr [r + 1],
        page_ids [p], last_visible [n], sinks [h] and biases [h, reach + 1] if the spec has them,
        pages kv_dtype [P, *page_shape], out [n, h, e])
        """
        ...

    def route(self, spec: RouteSpec) -> PrimFunc | None:
        """Return the PrimFunc that chooses experts and sorts slots for the set's `expert_linear`.

        (logits [n, E], bias [E] if the spec has it, ids i32 [n, K], weights [n, K], starts i32 [E +
        1], slots i32 [n * K])
        """
        ...

    def expert_linear(self, spec: ExpertLinearSpec) -> PackedLinear | PrimFunc | FusedKernel | None:
        """Return the kernel that multiplies each slot by its expert's weights.

        (x, ids, starts and slots if routed, weights [n, K] if combined, bias [E, N] if the spec has
        it, *packed or *portable, residual if the spec has it, y, scratch). None with a residual on
        CPUs, where an addition costs no launch, and with float16 if there is no such kernel. A set
        has this and `route`, or neither.
        """
        ...

    def short_conv(self, spec: ShortConvSpec) -> PrimFunc | None:
        """Return the PrimFunc of a short causal convolution; it updates the state in place.

        (x [n, c], sequences [n], query_indptr [r + 1], weight [taps, c], bias [c] if the spec has
        it, slots [r], state [slots, taps - 1, c], y [n, c])
        """
        ...

    def gated_delta(self, spec: GatedDeltaSpec) -> PrimFunc | None:
        """Return the PrimFunc of the gated delta rule; it updates the state in place.

        (qkv [n, width], gates [n, 2 h], query_indptr [r + 1], a_log [h], dt_bias [h], slots [r],
        state [slots, h, dk, dv], out [n, h * dv]); with a decay per channel, gates [n, h] and
        decays [n, h * dk] instead of gates, a_log and dt_bias
        """
        ...

    def mamba(self, spec: MambaSpec) -> PrimFunc | None:
        """Return the PrimFunc of Mamba's selective scan; it updates the state in place.

        (x [n, c], steps [n, c], bc [n, 2 d], query_indptr [r + 1], constants [d + 1, c], slots [r],
        state [slots, 1, d, c], out [n, c])
        """
        ...

    def mamba2(self, spec: Mamba2Spec) -> PrimFunc | None:
        """Return the PrimFunc of Mamba-2's state space; it updates the state in place.

        (xbc [n, width], steps [n, h], query_indptr [r + 1], constants [3, h], slots [r], state
        [slots, h, n, p], out [n, h * p])
        """
        ...

    def linear_recurrence(self, spec: LinearRecurrenceSpec) -> PrimFunc | None:
        """Return the PrimFunc of a linear recurrence; it updates the state in place.

        (x [n, c], decays [n, c], query_indptr [r + 1], slots [r], state [slots, 1, 1, c], out
        [n, c])
        """
        ...

    def dplr(self, spec: DplrSpec) -> PrimFunc | None:
        """Return the PrimFunc of a diagonal plus low-rank transition; it updates the state.

        (rows [n, width], query_indptr [r + 1], slots [r], state [slots, h, dk, dv], out [n, h *
        dv])
        """
        ...

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """Schedule any other element-wise or reducing PrimFunc; others are returned unchanged."""
        ...

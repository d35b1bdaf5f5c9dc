"""RoPE, cache append and attention on GPUs: one launch for short decode steps, else two or four.

The host only knows the sizes of a step. With as many rows as sequences, every sequence has one row;
with one sequence of several rows, no row is a decode row; otherwise the batch is mixed, and the
batch table says which rows each kernel computes. No context is longer than a split if the step has
no more page ids than a split has pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import INTEGERS, PagedAttentionSpec

from ..kernel_set import FusedKernel, Size
from . import emit as e
from .attention import RowTensors, last_visible_parameters, launch_rows
from .batch_table import ROW, Table
from .decode import DecodeTensors, launch_decode, launch_split_decode, launch_split_rows
from .limits import GpuLimits
from .rope import Load, RopeTensors, axes_parameters, launch_rope
from .splits import needed, pages_of, slots


def paged_attention(spec: PagedAttentionSpec, limits: GpuLimits) -> FusedKernel:
    """Return the fused kernel of RoPE, cache append and attention."""
    h, d, width = spec.heads, spec.head_dim, spec.rope().qkv_heads
    names = norm_names(spec)

    def emit(b: dict[str, Any], s: dict[str, Any]) -> None:
        norms: tuple[Load, ...] = tuple(lambda k, w=b[name]: w[k] for name in names)
        table = Table(b["table"])
        rest = (b["pages"], b["out"], b["parts"])
        more = (b.get(name) for name in ("rope_positions", "last_visible"))
        tensors = DecodeTensors(b["qkv"], table, b["query_indptr"], norms, *rest, *more)
        emit_attention(spec, limits, tensors, b["q"], s)

    func = e.prim_func(
        [
            ("qkv", ("n", width, d), spec.qkv_dtype),
            ("table", ("t",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            *axes_parameters(spec.axes),
            *last_visible_parameters(spec),
            *((name, (d,), "float32") for name in names),
            ("pages", ("count", *spec.attention().page_shape), spec.attention().page_dtype),
            ("out", ("n", h, d), spec.out_dtype),
            *scratch_parameters(spec),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=scratch_of(spec))


def norm_names(spec: PagedAttentionSpec) -> tuple[str, ...]:
    """Return the names of the parameters for the norms of q and k; () without norms."""
    return () if spec.qk_norm_eps is None else ("q_norm", "k_norm")


def scratch_parameters(spec: PagedAttentionSpec) -> list[e.Parameter]:
    """Return the parameters for the scratch memory of `scratch_of`."""
    h, d = spec.heads, spec.head_dim
    return [("q", ("n", h, d), "float32"), ("parts", ("w", h, d + 2), "float32")]


def scratch_of(spec: PagedAttentionSpec) -> tuple[tuple[tuple[Size, ...], str], ...]:
    """Return the scratch memory of paths with several launches: rotated q, and states of splits."""
    h, d = spec.heads, spec.head_dim

    def own(sizes: Any) -> Any:
        return slots(spec.page_size, sizes)

    return ((("n", h, d), "float32"), ((own, h, d + 2), "float32"))


def emit_attention(
    spec: PagedAttentionSpec, limits: GpuLimits, tensors: DecodeTensors, q: Any, s: dict[str, Any]
) -> None:
    """Emit all launches, and the host's choice among them; `s` has the sizes n, t, r1 and w."""
    n, choice = s["n"], AttentionLaunches.of(spec, s)
    own = (tensors.qkv, tensors.table, tensors.norms, tensors.pages, q, tensors.axes)
    rope = RopeTensors(*own)

    def append() -> None:
        launch_rope(spec.rope(), limits, rope, n, range(spec.rope().qkv_heads))

    def rows() -> None:
        own = RowTensors(q, tensors.pages, tensors.out, last_visible=tensors.last_visible)
        launch_rows(spec.attention(), limits, tensors.table, own, n)

    if spec.kv_dtype in INTEGERS:
        # A row's own key and value are read as all others: from the pages, where they are integers.
        append()
        e.launch_if(T.Or(choice.unsplit, choice.several), rows)
        e.launch_if(
            choice.splits,
            lambda: launch_split_rows(spec, limits, tensors, q, s["w"], s["r1"] - 1),
        )
        return

    def several() -> None:
        append()
        rows()

    e.launch_if(choice.unsplit, lambda: launch_decode(spec, limits, tensors, n))
    e.launch_if(choice.several, several)
    e.launch_if(
        choice.splits,
        lambda: launch_split_decode(spec, limits, tensors, s["w"], s["r1"] - 1),
    )


@dataclass(frozen=True, slots=True)
class AttentionLaunches:
    """Which launches a step needs: `unsplit`, `several` or `splits` alone, or the last two."""

    unsplit: Any  # whether all rows are decode rows with short contexts
    several: Any  # whether some sequences have several rows
    splits: Any  # whether decode rows are computed in split-K splits

    @staticmethod
    def of(spec: PagedAttentionSpec, s: dict[str, Any]) -> AttentionLaunches:
        """Return the conditions for the sizes n, t, r1 and w."""
        n, r = s["n"], s["r1"] - 1
        pages = s["t"] - ROW * n - s["w"]
        # alone: each sequence has one row; one: the step has one sequence
        alone, one = r == n, r == 1
        enough = needed(spec.page_size, pages, r) <= s["w"]
        long = T.And(enough, pages > pages_of(spec.page_size))
        return AttentionLaunches(
            T.And(alone, T.Not(long)),
            T.Not(alone),
            T.Or(T.And(alone, long), T.And(T.And(T.Not(alone), T.Not(one)), enough)),
        )

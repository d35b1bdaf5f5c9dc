"""Rotation, append and attention: one launch for short decode steps, two for any other.

The host chooses: every sequence has one row if there are as many rows as sequences; how long
contexts can be, the number of page ids says.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from ..kernel_set import FusedKernel
from ..specs import PagedAttentionSpec
from . import emit as e
from .attend import SPLIT
from .attention import launch_rows
from .batch_table import Table
from .decode import PARTS, DecodeTensors, launch_decode, launch_split_decode
from .limits import GpuLimits
from .rope import Load, RopeTensors, launch_rope


def paged_attention(spec: PagedAttentionSpec, limits: GpuLimits) -> FusedKernel:
    """See `KernelSet.paged_attention`."""
    h, g, d = spec.heads, spec.kv_heads, spec.head_dim
    names = norm_names(spec)
    scratch = scratch_of(spec)

    def emit(b: dict[str, Any], s: dict[str, Any]) -> None:
        norms: tuple[Load, ...] = tuple(lambda k, w=b[name]: w[k] for name in names)
        tensors = DecodeTensors(
            b["qkv"], Table(b["table"]), norms, b["pages"], b["out"], b["parts"]
        )
        emit_attention(spec, limits, tensors, b["q"], s)

    func = e.prim_func(
        [
            ("qkv", ("n", h + 2 * g, d), "float32"),
            ("table", ("t",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            *((name, (d,), "float32") for name in names),
            ("pages", ("count", 2, g, spec.page_size, d), spec.kv_dtype),
            ("out", ("n", h, d), "float32"),
            ("q", *scratch[0]),
            ("parts", *scratch[1]),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=scratch)


def norm_names(spec: PagedAttentionSpec) -> tuple[str, ...]:
    """Parameters for the norms of q and k."""
    return () if spec.qk_norm_eps is None else ("q_norm", "k_norm")


def scratch_of(spec: PagedAttentionSpec) -> tuple[tuple[tuple[int | str, ...], str], ...]:
    """Memory of the paths that take several launches: rotated q, and states of splits."""
    h, d = spec.heads, spec.head_dim
    return ((("n", h, d), "float32"), ((PARTS, h, d + 2), "float32"))


def emit_attention(
    spec: PagedAttentionSpec, limits: GpuLimits, tensors: DecodeTensors, q: Any, s: dict[str, Any]
) -> None:
    """Emit all paths, and the host's choice; `s` has the sizes n, t and r1."""
    n = s["n"]
    splits = splits_of(spec, s)

    def several() -> None:
        rope = RopeTensors(tensors.qkv, tensors.table, tensors.norms, tensors.pages, q)
        launch_rope(spec.rope(), limits, rope, n, range(spec.heads + 2 * spec.kv_heads))
        launch_rows(spec.attention(), limits, tensors.table, q, tensors.pages, tensors.out, n)

    e.choose(
        s["r1"] == n + 1,
        lambda: e.choose(
            is_long(n, splits),
            lambda: launch_split_decode(spec, limits, tensors, n, splits),
            lambda: launch_decode(spec, limits, tensors, n),
        ),
        several,
    )


def splits_of(spec: PagedAttentionSpec, s: dict[str, Any]) -> Any:
    """Bound of the splits of any row, int32, from the number of page ids."""
    pages = s["t"] - 2 * s["n"]
    return T.max((pages * spec.page_size + SPLIT - 1) // SPLIT, T.int32(1))


def is_long(n: Any, splits: Any) -> Any:
    """Whether the rows' splits are to be shared among blocks, and there is memory for it."""
    return T.And(splits > 1, n * splits <= PARTS)

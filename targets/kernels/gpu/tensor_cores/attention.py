"""Rotation, append and attention on tensor cores, over paged keys and values of float16.

One launch rotates all rows and appends what they bring. Rows of sequences that have several in a
step then share the reading of pages, tile by tile (`attend_rows.cuh`); the only row of a sequence
has a block for each split of its tokens (`attend_splits.cuh`), or one block for all where no
context is long. All compute by the same two functions (`attend.cuh`), in an order that a row's
position alone gives. Which rows are where the batch table says, see `gpu/paged_attention.py`.

Queries are rounded to float16, and so are weights, each of its block's largest; scores, sums and
what is folded are float32. What does not fit (other heads, ALiBi, sinks) stays with
`gpu/paged_attention.py`.
"""

from __future__ import annotations

import math
from typing import Any

from tvm.script import tirx as T

from ...kernel_set import FusedKernel
from ...specs import PagedAttentionSpec
from .. import emit as e
from ..batch_table import Together
from ..limits import GpuLimits
from ..paged_attention import Choice, norm_names, scratch_of
from ..rope import Load, RopeTensors, launch_rope
from ..splits import SPLIT
from .call import FLOATS, call, joined, shared, templated

HEAD_SIZES = (64, 128)
PAGE = 16  # tokens: of a multiplication
MOST_HEADS = 16  # that share a key-value head: queries of a warp
_LANES, _ROW_WARPS = 32, 4
_TILE = _ROW_WARPS * MOST_HEADS  # queries
_BLOCKS = 4  # of a split, each of a warp
assert SPLIT == _BLOCKS * 64
_NO_WINDOW = 1 << 30  # tokens


def source() -> str:
    """The CUDA C++ of all kernels."""
    return joined("instructions", "rows", "attend", "attend_rows", "attend_splits")


def fits(spec: PagedAttentionSpec) -> bool:
    """Whether `paged_attention` is for it."""
    shape = spec.head_dim in HEAD_SIZES and spec.page_size == PAGE
    heads = spec.heads // spec.kv_heads <= MOST_HEADS
    return shape and heads and spec.kv_dtype == "float16" and not (spec.slopes or spec.sinks)


def paged_attention(spec: PagedAttentionSpec, limits: GpuLimits) -> FusedKernel:
    """See `KernelSet.paged_attention`; float16 q in the place of float32."""
    h, g, d, width = spec.heads, spec.kv_heads, spec.head_dim, spec.rope().qkv_heads
    names = norm_names(spec)
    (q_shape, _), parts = scratch_of(spec)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        norms: tuple[Load, ...] = tuple(lambda k, w=b[name]: w[k] for name in names)
        rope = RopeTensors(b["qkv"], Together(b["table"]), norms, b["pages"], b["q"])
        launch_rope(spec.rope(), limits, rope, sizes["n"], range(width))
        _Attention(spec, b, sizes).emit()

    func = e.prim_func(
        [
            ("qkv", ("n", width, d), spec.qkv_dtype),
            ("table", ("t",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            *((name, (d,), "float32") for name in names),
            ("pages", ("count", spec.planes, g, spec.page_size, d), spec.kv_dtype),
            ("out", ("n", h, d), spec.out_dtype),
            ("q", ("n", h, d), "float16"),
            ("parts", ("w", h, d + 2), "float32"),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=((q_shape, "float16"), parts))


class _Attention:
    """Emits the launches over rotated rows."""

    def __init__(
        self, spec: PagedAttentionSpec, buffers: dict[str, Any], sizes: dict[str, Any]
    ) -> None:
        self.spec, self.b, self.sizes = spec, buffers, sizes
        self.group = spec.heads // spec.kv_heads
        log2e = math.log2(math.e)  # scores are powers of two
        capped = spec.softcap is not None
        scale = spec.scale / spec.softcap if spec.softcap else spec.scale * log2e
        cap = spec.softcap * log2e if spec.softcap else 1.0
        window = _NO_WINDOW if spec.window is None else spec.window
        self.window = T.int32(window)
        self.scoring = (e.number(scale), e.number(cap), self.window)
        self.shape = (spec.heads, spec.kv_heads, spec.head_dim, spec.planes, capped)
        self.y = FLOATS[spec.out_dtype]

    def emit(self) -> None:
        """All of them; the host chooses."""
        choice = Choice.of(self.spec, self.sizes)
        e.perhaps(choice.whole, lambda: self._launch_one(whole=True))
        e.perhaps(choice.several, self._launch_rows)
        e.perhaps(choice.splits, self._launch_splits)

    def _launch_rows(self) -> None:
        b, n = self.b, self.sizes["n"]
        name = templated("attend_rows", *self.shape, self.y)

        def block(_head: Any, _tile: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("q", "table", "pages", "out")]
            memory = shared(self.spec.head_dim * 512)  # up to 64 KB; from sm_80 on all have 99
            call(source(), name, *tensors, memory, T.Cast("int32", n), *self.scoring)

        rows = _TILE // self.group
        e.launch((self.spec.kv_heads, (n + rows - 1) // rows), _ROW_WARPS * _LANES, block)

    def _launch_splits(self) -> None:
        b, spec = self.b, self.spec
        self._launch_one(whole=False)
        name = templated("merge_splits", spec.heads, spec.head_dim, self.y)

        def block(_head: Any, _sequence: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("table", "query_indptr", "parts", "out")]
            call(source(), name, *tensors, self.window)

        e.launch((spec.heads, self.sizes["r1"] - 1), spec.head_dim, block)

    def _launch_one(self, *, whole: bool) -> None:
        b, spec, n, slots = self.b, self.spec, self.sizes["n"], self.sizes["w"]
        name = templated("attend_splits", *self.shape, whole, self.y)

        def block(_x: Any, _y: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("q", "table", "pages")]
            out = b["out" if whole else "parts"].data
            memory = shared(_BLOCKS * self.group * (spec.head_dim + 2) * 4)
            first_slot = T.Cast("int32", b["table"].shape[0] - slots)
            call(source(), name, *tensors, out, memory, first_slot, *self.scoring)

        grid = (spec.kv_heads, n) if whole else (slots, spec.kv_heads)
        e.launch(grid, _BLOCKS * _LANES, block)

"""RoPE, cache append and attention on tensor cores, over paged keys and values of float16.

One launch rotates all rows and appends their keys and values. Rows of a sequence that has several
in a step then share loads of pages, tile by tile (`attend_rows.cuh`); a decode row has a block for
each split of its tokens (`attend_splits.cuh`), or a single block if no context is long. All use the
same two functions (`attend.cuh`), in an order that depends on a row's position alone. The batch
table says which rows each kernel computes, see `gpu/paged_attention.py`.

Queries are rounded to float16, and so are weights relative to their block's largest score; scores
and sums are float32. Other head sizes, ALiBi and sinks use `gpu/paged_attention.py`.
"""

from __future__ import annotations

import math
from typing import Any

from tvm.script import tirx as T

from wherry.ops import PagedAttentionSpec

from ...kernel_set import FusedKernel
from .. import emit as e
from ..attention import last_visible_parameters
from ..batch_table import AllRows
from ..limits import GpuLimits
from ..paged_attention import AttentionLaunches, norm_names, scratch_of
from ..rope import Load, RopeTensors, axes_parameters, launch_rope
from ..splits import SPLIT
from .call import FLOATS, call, joined, shared, templated

# Supported head sizes -> blocks that a multiprocessor must have room for, in the kernels of row
# tiles and of splits. With a number, the assembler may use all registers that the number leaves;
# with 0 it may spill registers to fit one more block. Heads of 512 would exceed the registers.
HEAD_SIZES = {64: (3, 3), 80: (2, 2), 96: (2, 2), 128: (2, 2), 256: (0, 0)}
PAGE = 16  # tokens of a page, and of one matrix multiplication
MOST_HEADS = 16  # maximum query heads that share a KV head: the queries of one warp
_LANES, _ROW_WARPS = 32, 4
_TILE = _ROW_WARPS * MOST_HEADS  # queries of a tile
_MOST_OF_BLOCK = 128  # dimensions of values that one block of a tile computes
_BLOCKS, _BLOCK = 4, 64  # blocks of a split, one per warp; tokens of a block
assert SPLIT == _BLOCKS * _BLOCK
_NO_WINDOW = 1 << 30  # tokens of a window that never ends


def source() -> str:
    """Return the CUDA C++ source of all attention kernels."""
    return joined("instructions", "rows", "attend", "attend_rows", "attend_splits")


def fits(spec: PagedAttentionSpec) -> bool:
    """Return whether `paged_attention` supports the spec."""
    shape = spec.head_dim in HEAD_SIZES and spec.page_size == PAGE
    heads = spec.heads // spec.kv_heads <= MOST_HEADS
    return (
        shape
        and heads
        and spec.kv_dtype == "float16"
        and not (spec.slopes or spec.sinks or spec.reach)
    )


def shared_of_rows(head_dim: int) -> int:
    """Return the shared memory of `attend_rows` in bytes: keys, values, states of queries."""
    sizes = (64, 128, 256)  # dimensions for which the kernel has shared memory layouts

    def padded(dim: int) -> int:
        return next(size for size in sizes if size >= dim)

    out = padded(min(head_dim, _MOST_OF_BLOCK))
    return 2 * _BLOCK * (padded(head_dim) + out) + 4 * _TILE * out + 16 * _ROW_WARPS * _LANES


def shared_of_splits(spec: PagedAttentionSpec, *, unsplit: bool) -> int:
    """Return the bytes of shared memory of a block of `attend_splits`.

    They hold the states of its heads, for each block of tokens and for earlier splits.
    """
    group, state = spec.heads // spec.kv_heads, spec.head_dim + 2
    numbers = _BLOCKS * state + (state + 2 if unsplit else 0)
    return 4 * group * numbers


def paged_attention(spec: PagedAttentionSpec, limits: GpuLimits) -> FusedKernel:
    """Return the fused kernel of `KernelSet.paged_attention`; scratch q is float16, not float32."""
    h, g, d, width = spec.heads, spec.kv_heads, spec.head_dim, spec.rope().qkv_heads
    names = norm_names(spec)
    (q_shape, _), parts = scratch_of(spec)

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        norms: tuple[Load, ...] = tuple(lambda k, w=b[name]: w[k] for name in names)
        by_axis = b.get("rope_positions")
        rope = RopeTensors(b["qkv"], AllRows(b["table"]), norms, b["pages"], b["q"], by_axis)
        launch_rope(spec.rope(), limits, rope, sizes["n"], range(width))
        _Attention(spec, b, sizes).emit()

    func = e.prim_func(
        [
            ("qkv", ("n", width, d), spec.qkv_dtype),
            ("table", ("t",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            *axes_parameters(spec.axes),
            *last_visible_parameters(spec),
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
    """Emits the attention launches that follow the rotation of the rows."""

    def __init__(
        self, spec: PagedAttentionSpec, buffers: dict[str, Any], sizes: dict[str, Any]
    ) -> None:
        self.spec, self.b, self.sizes = spec, buffers, sizes
        self.group = spec.heads // spec.kv_heads
        log2e = math.log2(math.e)  # the kernels compute softmax by powers of two
        capped = spec.softcap is not None
        scale = spec.scale / spec.softcap if spec.softcap else spec.scale * log2e
        cap = spec.softcap * log2e if spec.softcap else 1.0
        window = _NO_WINDOW if spec.window is None else spec.window
        self.window = T.int32(window)
        self.scoring = (e.number(scale), e.number(cap), self.window)
        self.shape = (spec.heads, spec.kv_heads, spec.head_dim, spec.planes, capped)
        self.y = FLOATS[spec.out_dtype]

    def emit(self) -> None:
        """Emit all launches; the host chooses among them."""
        choice = AttentionLaunches.of(self.spec, self.sizes)
        e.launch_if(choice.unsplit, lambda: self._launch_one(unsplit=True))
        e.launch_if(choice.several, self._launch_rows)
        e.launch_if(choice.splits, self._launch_splits)

    def _launch_rows(self) -> None:
        b, n = self.b, self.sizes["n"]
        ahead = self.spec.last_visible
        name = templated("attend_rows", *self.shape, self.y, *([True] if ahead else []))

        def block(_head: Any, _tile: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("q", "table", "pages", "out")]
            memory = shared(shared_of_rows(self.spec.head_dim))
            last = [b["last_visible"].data] if ahead else []
            call(source(), name, *tensors, memory, T.Cast("int32", n), *self.scoring, *last)

        rows = _TILE // self.group
        across = self.spec.kv_heads * -(-self.spec.head_dim // _MOST_OF_BLOCK)
        grid = (across, (n + rows - 1) // rows)
        e.launch(grid, _ROW_WARPS * _LANES, block, HEAD_SIZES[self.spec.head_dim][0])

    def _launch_splits(self) -> None:
        b, spec = self.b, self.spec
        self._launch_one(unsplit=False)
        name = templated("merge_splits", spec.heads, spec.head_dim, self.y)

        def block(_head: Any, _sequence: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("table", "query_indptr", "parts", "out")]
            call(source(), name, *tensors, self.window)

        threads = -(-spec.head_dim // _LANES) * _LANES
        e.launch((spec.heads, self.sizes["r1"] - 1), threads, block)

    def _launch_one(self, *, unsplit: bool) -> None:
        b, spec, n, slots = self.b, self.spec, self.sizes["n"], self.sizes["w"]
        name = templated("attend_splits", *self.shape, unsplit, self.y)

        def block(_x: Any, _y: Any, _thread: Any) -> None:
            tensors = [b[key].data for key in ("q", "table", "pages")]
            out = b["out" if unsplit else "parts"].data
            memory = shared(shared_of_splits(spec, unsplit=unsplit))
            first_slot = T.Cast("int32", b["table"].shape[0] - slots)
            call(source(), name, *tensors, out, memory, first_slot, *self.scoring)

        grid = (spec.kv_heads, n) if unsplit else (slots, spec.kv_heads)
        e.launch(grid, _BLOCKS * _LANES, block, HEAD_SIZES[spec.head_dim][1])

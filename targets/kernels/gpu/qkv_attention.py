"""The qkv linear, RoPE, cache append and attention in one launch, for steps of one or two rows.

A block computes q, k and v of its own heads from x, and continues as in `decode`. Other steps use
the launches of the linear and of the attention, with the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from wherry.ops import PagedAttentionSpec, QkvAttentionSpec

from ..kernel_set import FusedKernel
from . import emit as e
from . import linear, linear_plan
from .attend import bytes_of
from .attention import MOST_SHARED, heads_of_block, last_visible_parameters
from .batch_table import Table
from .decode import DecodeBlock, DecodeTensors, bytes_beyond
from .gemv import Columns, Words, multiply
from .limits import GpuLimits
from .paged_attention import AttentionLaunches, emit_attention, scratch_of, scratch_parameters
from .rope import Load, threads_of
from .weights import WORD

GEMV_ROWS = 2  # rows at most, because each row reads all weights of the linear
OUTPUTS = 4  # columns that a thread computes at a time


@dataclass(frozen=True, slots=True)
class _Heads:
    """View of a tensor [n, heads * e] as [n, heads, e]."""

    buffer: Any
    head_dim: int

    @property
    def dtype(self) -> str:
        """Return the dtype of the elements."""
        return str(self.buffer.dtype)

    def __getitem__(self, index: tuple[Any, Any, Any]) -> Any:
        row, head, k = index
        return self.buffer[row, head * self.head_dim + k]


def qkv_attention(spec: QkvAttentionSpec, limits: GpuLimits) -> FusedKernel:
    """Return the fused kernel of the qkv linear, RoPE, cache append and attention."""
    fused, attention = spec.linear, spec.attention
    h, g, d = attention.heads, attention.kv_heads, attention.head_dim
    has_norms = attention.qk_norm_eps is not None
    inputs = [p for p in linear.parameters(fused) if p[0] not in ("y", "inverse")]
    inverse = [(("n",), "float32")] if fused.norm_eps is not None else []
    scratch = (*scratch_of(attention), (("n", fused.width), fused.y_dtype), *inverse)

    def emit(b: dict[str, Any], s: dict[str, Any]) -> None:
        both = b.get("norms")
        norms: tuple[Load, ...] = ()
        if both is not None:
            norms = (lambda k: both[0, k], lambda k: both[1, k])
        table, qkv = Table(b["table"]), _Heads(b["y"], d)
        rest = (b["pages"], b["out"], b["parts"])
        last = b.get("last_visible")
        tensors = DecodeTensors(qkv, table, b["query_indptr"], norms, *rest, last_visible=last)
        operands = linear.operands(fused, b)
        n = s["n"]

        def apart() -> None:
            linear.emit(fused, limits, operands, n)
            emit_attention(attention, limits, tensors, b["q"], s)

        e.choose(
            T.And(AttentionLaunches.of(attention, s).unsplit, n <= GEMV_ROWS),
            lambda: _launch(spec, limits, operands, tensors, n),
            apart,
        )

    func = e.prim_func(
        [
            *[(name, ["n" if x == "m" else x for x in shape], t) for name, shape, t in inputs],
            ("table", ("t",), "int32"),
            ("query_indptr", ("r1",), "int32"),
            *last_visible_parameters(attention),
            *([("norms", (2, d), "float32")] if has_norms else []),
            ("pages", ("count", attention.planes, g, attention.page_size, d), attention.kv_dtype),
            ("out", ("n", h, d), attention.out_dtype),
            *scratch_parameters(attention),
            ("y", ("n", fused.width), fused.y_dtype),
            *(("inverse", ("n",), "float32") for _ in inverse),
        ],
        emit,
    )
    return FusedKernel(compute=func, scratch=scratch, joined=has_norms)


def _launch(
    spec: QkvAttentionSpec,
    limits: GpuLimits,
    operands: linear_plan.Operands,
    tensors: DecodeTensors,
    n: Any,
) -> None:
    attention, threads = spec.attention, threads_of(limits)
    beyond = bytes_beyond(attention, limits)
    heads = heads_of_block(attention.attention(), limits, lambda k: beyond(k) + _partial(limits))

    def block(block: Any, row: Any, thread: Any) -> None:
        first = e.let(block * heads)
        work = DecodeBlock(attention, tensors, heads, first, row, thread, limits)
        _compute_qkv(spec, limits, operands, work)
        work.attend_unsplit()

    e.launch((attention.heads // heads, n), threads, block)


def _partial(limits: GpuLimits) -> int:
    """Return the bytes of shared memory for the lanes' sums."""
    return 4 * OUTPUTS * threads_of(limits)


def _compute_qkv(
    spec: QkvAttentionSpec, limits: GpuLimits, operands: linear_plan.Operands, work: DecodeBlock
) -> None:
    """Emit the q, k and v heads that `DecodeBlock.load_qkv` would load."""
    plan, d, threads = (
        linear_plan.LinearTiling.of(spec.linear, limits),
        spec.attention.head_dim,
        work.threads,
    )
    inverse = None
    if spec.linear.norm_eps is not None:
        (inverse,) = linear_plan.inverses_of(plan, operands.x, [work.row], work.thread)

    def load(k: Any) -> list[Any]:
        return linear_plan.eight(plan, operands, work.row, inverse, k)

    words: Words = load
    if _x_fits(spec.attention, limits, work.heads, plan.groups * 32):
        words = _in_shared(plan.groups * 32, load, work)
    width, across = work.width * d, threads // plan.lanes
    partial = e.shared((OUTPUTS * threads,))

    def store(_row: int, column: Any, sums: list[Any]) -> None:
        def put() -> None:  # rounds as the separate linear would when it stores
            T.buffer_store(work.raw, e.rounded(spec.linear.y_dtype, sums[0]), [column])

        e.when(column < width, put)

    with T.serial(-(-width // (across * OUTPUTS))) as turn:
        columns = Columns(
            first=e.let(turn * (across * OUTPUTS)),
            outputs=OUTPUTS,
            thread=work.thread,
            threads=threads,
            place=lambda column: work.head_of(e.div(column, d)) * d + e.mod(column, d),
            width=width,
        )
        multiply(plan, operands, [words], columns, store, partial)
        e.barrier()


def _x_fits(spec: PagedAttentionSpec, limits: GpuLimits, heads: int, columns: int) -> bool:
    """Return whether shared memory has room for a row of x."""
    used = bytes_of(1, heads, spec.head_dim) + bytes_beyond(spec, limits)(heads) + _partial(limits)
    return used + 4 * columns <= min(MOST_SHARED, limits.shared_memory_bytes)


def _in_shared(columns: int, load: Words, work: DecodeBlock) -> Words:
    """Emit the copy of x, normalized, to shared memory; return the load of its words."""
    x = e.shared((columns,))

    def copy(word: Any) -> None:
        for i, value in enumerate(load(word * WORD)):
            T.buffer_store(x, value, [word * WORD + i])

    e.over(columns // WORD, work.threads, work.thread, copy)
    e.barrier()
    return lambda k: [x[k + i] for i in range(WORD)]

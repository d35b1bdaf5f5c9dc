"""Rotary embedding of q and k, and the append of k and v to the paged cache: a block a head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from ..specs import RopeAppendSpec
from . import emit as e
from .limits import GpuLimits
from .norm import inverse_rms

TENSORS = 9  # of the kernel with norms


@dataclass(frozen=True, slots=True)
class _Tensors:
    """TIR buffers of `KernelSet.rope_append`; no norms: none."""

    qkv: Any
    positions: Any
    sequences: Any
    page_indptr: Any
    page_ids: Any
    norms: tuple[Any, ...]  # of q and of k
    pages: Any
    q_out: Any


def rope_append(spec: RopeAppendSpec, limits: GpuLimits) -> PrimFunc:
    """Kernel of `spec`; see `KernelSet.rope_append` for the parameters."""
    return _plain(spec, limits) if spec.qk_norm_eps is None else _with_norm(spec, limits)


def _plain(spec: RopeAppendSpec, limits: GpuLimits) -> PrimFunc:
    h, g, e_ = spec.heads, spec.kv_heads, spec.head_dim

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def rotate(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, h + 2 * g, e_), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        Pages = T.match_buffer(pages, (count, 2, g, spec.page_size, e_), spec.kv_dtype)
        Q = T.match_buffer(q_out, (n, h, e_), "float32")
        _launches(spec, limits, _Tensors(X, Position, Sequence, Indptr, Ids, (), Pages, Q), n)

    return rotate


def _with_norm(spec: RopeAppendSpec, limits: GpuLimits) -> PrimFunc:
    h, g, e_ = spec.heads, spec.kv_heads, spec.head_dim

    @T.prim_func(s_tir=True, private=True, check_well_formed=False)
    def rotate_normed(
        qkv: T.handle,
        positions: T.handle,
        sequences: T.handle,
        page_indptr: T.handle,
        page_ids: T.handle,
        q_norm: T.handle,
        k_norm: T.handle,
        pages: T.handle,
        q_out: T.handle,
    ) -> None:
        T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
        n, r1, p, count = T.int64(), T.int64(), T.int64(), T.int64()
        X = T.match_buffer(qkv, (n, h + 2 * g, e_), "float32")
        Position = T.match_buffer(positions, (n,), "int32")
        Sequence = T.match_buffer(sequences, (n,), "int32")
        Indptr = T.match_buffer(page_indptr, (r1,), "int32")
        Ids = T.match_buffer(page_ids, (p,), "int32")
        QNorm = T.match_buffer(q_norm, (e_,), "float32")
        KNorm = T.match_buffer(k_norm, (e_,), "float32")
        Pages = T.match_buffer(pages, (count, 2, g, spec.page_size, e_), spec.kv_dtype)
        Q = T.match_buffer(q_out, (n, h, e_), "float32")
        norms = (QNorm, KNorm)
        _launches(spec, limits, _Tensors(X, Position, Sequence, Indptr, Ids, norms, Pages, Q), n)

    return rotate_normed


def _launches(spec: RopeAppendSpec, limits: GpuLimits, tensors: _Tensors, n: Any) -> None:
    """Emit one kernel for all heads, or two where one takes more tensors than the device allows."""
    threads, h, g = limits.block_for(spec.head_dim), spec.heads, spec.kv_heads
    too_many = tensors.norms and limits.storage_buffers and limits.storage_buffers < TENSORS
    parts = ((0, h), (h, 2 * g)) if too_many else ((0, h + 2 * g),)
    for first, count in parts:

        def emit(block: Any, row: Any, t: Any, first: int = first, count: int = count) -> None:
            head = e.let(block + first)
            _head(spec, tensors, row, head, range(first, first + count), t, threads)

        e.launch((count, n), threads, emit)


def _head(
    spec: RopeAppendSpec,
    tensors: _Tensors,
    row: Any,
    head: Any,
    heads: range,
    thread: Any,
    threads: int,
) -> None:
    """Emit one head of qkv. `heads` are those that the launch has: a test that none fails goes."""
    h, g, size = spec.heads, spec.kv_heads, spec.head_dim
    x = e.shared((size,))
    e.over(size, threads, thread, lambda k: T.buffer_store(x, tensors.qkv[row, head, k], [k]))
    e.barrier()
    load: Callable[[Any], Any] = lambda k: x[k]  # noqa: E731
    if tensors.norms:
        load = _normed(spec, tensors, x, head, heads, thread, threads)
    position = e.let(tensors.positions[row])

    def query(k: Any) -> None:
        T.buffer_store(tensors.q_out, _rotated(spec, load, k, position), [row, head, k])

    def cache(k: Any) -> None:
        page = tensors.page_ids[
            tensors.page_indptr[tensors.sequences[row]] + position // spec.page_size
        ]

        def store(which: int, first: int, value: Any) -> None:
            index = [T.Cast("int64", page), which, head - first, position % spec.page_size, k]
            T.buffer_store(tensors.pages, T.Cast(spec.kv_dtype, value), index)

        e.either(
            head < h + g,
            lambda: store(0, h, _rotated(spec, load, k, position)),
            lambda: store(1, h + g, x[k]),
        )

    if heads.stop <= h:
        e.over(size, threads, thread, query)
    elif heads.start >= h:
        e.over(size, threads, thread, cache)
    else:
        e.either(
            head < h,
            lambda: e.over(size, threads, thread, query),
            lambda: e.over(size, threads, thread, cache),
        )


def _normed(
    spec: RopeAppendSpec,
    tensors: _Tensors,
    x: Any,
    head: Any,
    heads: range,
    thread: Any,
    threads: int,
) -> Callable[[Any], Any]:
    """Emit the RMS of a head (of V too, unused: no branch around barriers); the normed elements."""
    assert spec.qk_norm_eps is not None
    inverse = e.let(inverse_rms(lambda k: x[k], spec.head_dim, thread, threads, spec.qk_norm_eps))
    q_norm, k_norm = tensors.norms

    def load(k: Any) -> Any:
        if heads.stop <= spec.heads:
            weight = q_norm[k]
        elif heads.start >= spec.heads:
            weight = k_norm[k]
        else:
            weight = T.if_then_else(head < spec.heads, q_norm[k], k_norm[k])
        return x[k] * inverse * weight

    return load


def _rotated(spec: RopeAppendSpec, load: Callable[[Any], Any], k: Any, position: Any) -> Any:
    """Emit element k of a head after the rotation; beyond `rotary_dim` it passes."""
    half = spec.rotary_dim // 2
    result = e.private(1)
    j = e.let(k % half)
    angle = T.Cast("float32", position) * e.constant(spec.inv_freq, j)

    def rotate() -> None:
        cos, sin = e.cos_sin(angle)
        other = e.let(T.if_then_else(k < half, T.float32(0) - load(j + half), load(j)))
        value = e.fma(load(k), cos, other * sin)
        T.buffer_store(result, value * e.number(spec.scaling), [0])

    if spec.rotary_dim == spec.head_dim:
        rotate()
    else:
        e.either(k < spec.rotary_dim, rotate, lambda: T.buffer_store(result, load(k), [0]))
    return result[0]

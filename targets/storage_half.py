"""Float16 in memory, for devices that can load and store it but not compute with it.

On OpenCL (`with_storage_half`):

    T.Cast("float32", A[i])                T.call_pure_extern("float32", "vload_half", i, A)
    T.Cast("float32x4", A[i : i + 4])      T.call_pure_extern("float32x4", "vload_half4", i / 4, A)
    A[i] = T.Cast("float16", x)            T.call_extern("void", "vstore_half", x, i, A)

OpenCL C has these functions on every device. A variable of type half needs an extension, which many
CPUs and some GPUs lack. On Vulkan (`with_single_halves`):

    x[k : k + 4] = T.Cast("float32x4", A[i : i + 4])      x[k] = T.Cast("float32", A[i]); ...

In WGSL four elements of an array become a vector by a constructor, which counts as float16
arithmetic. Kernels that compute in float16 stay unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad
from tvm.tirx import BufferStore, Cast, PrimFunc, Ramp
from tvm_ffi import structural_map

HALF, SINGLE = "float16", "float32"
LANES = 4  # elements of the vectors that kernels load
VECTOR = f"{SINGLE}x{LANES}"


def with_storage_half(func: PrimFunc) -> PrimFunc:
    """Rewrite float16 accesses of `func` for any OpenCL device."""
    body = structural_map(func.body, (Cast, _loaded))
    return func.with_body(structural_map(body, (BufferStore, _stored)))


def with_single_halves(func: PrimFunc) -> PrimFunc:
    """Rewrite float16 vector loads of `func` for Vulkan devices with float16 buffers."""
    return func.with_body(structural_map(func.body, (BufferStore, _one_by_one)))


def _loaded(cast: Cast) -> Any:
    load, dtype = cast.value, str(cast.ty.dtype)
    if not _is_load(load) or dtype not in (SINGLE, VECTOR):
        return cast
    *rows, last = load.indices
    if dtype == SINGLE:
        index = _offset(load.source, [*rows, last])
        return tirx.call_pure_extern(dtype, "vload_half", index, load.source.data)
    assert isinstance(last, Ramp), load
    index = tirx.truncdiv(_offset(load.source, [*rows, last.base]), LANES)
    return tirx.call_pure_extern(dtype, f"vload_half{LANES}", index, load.source.data)


def _stored(store: BufferStore) -> Any:
    buffer, value = store.buffer, store.value
    if buffer.dtype != HALF or not isinstance(value, Cast) or str(value.value.ty.dtype) != SINGLE:
        return store
    index = _offset(buffer, store.indices)
    call = tirx.call_extern("void", "vstore_half", value.value, index, buffer.data)
    return tirx.Evaluate(call)


def _one_by_one(store: BufferStore) -> Any:
    value = store.value
    if not isinstance(value, Cast) or str(value.ty.dtype) != VECTOR or not _is_load(value.value):
        return store
    load = value.value
    (*rows, last), (*to_rows, to_last) = load.indices, store.indices
    assert isinstance(last, Ramp) and isinstance(to_last, Ramp), store

    def one(i: int) -> BufferStore:
        element = load.source[(*rows, last.base + i)]
        return BufferStore(store.buffer, tirx.Cast(SINGLE, element), [*to_rows, to_last.base + i])

    return tirx.SeqStmt([one(i) for i in range(LANES)])


def _is_load(value: Any) -> bool:
    return isinstance(value, TensorLoad) and value.source.dtype == HALF


def _offset(buffer: tirx.Buffer, indices: Sequence[Any]) -> Any:
    """Return the flat offset of an element, in elements."""
    index = indices[0]
    for extent, i in zip(buffer.shape[1:], indices[1:], strict=True):
        index = index * extent + i
    return index

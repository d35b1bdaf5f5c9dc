"""Halves in memory for OpenCL devices that cannot compute with them.

    T.Cast("float32", A[i])                   T.call_pure_extern("float32", "vload_half", i, A)

OpenCL C has `vload_half` on every device, whereas a variable of type half needs an extension, which
many CPUs and some GPUs lack. Halves that a kernel computes with are left as they are.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad
from tvm.tirx import Cast, PrimFunc
from tvm_ffi import structural_map


def with_storage_half(func: PrimFunc) -> PrimFunc:
    """Rewrite the casts from float16 to float32 of what is loaded from memory."""

    def rewrite(cast: Cast) -> Any:
        load = cast.value
        if not isinstance(load, TensorLoad) or str(cast.ty.dtype) != "float32":
            return cast
        buffer = load.source
        if buffer.dtype != "float16":
            return cast
        index: Any = load.indices[0]
        for extent, i in zip(buffer.shape[1:], load.indices[1:], strict=True):
            index = index * extent + i
        return tirx.call_pure_extern("float32", "vload_half", index, buffer.data)

    return func.with_body(structural_map(func.body, (Cast, rewrite)))

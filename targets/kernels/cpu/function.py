"""Builds PrimFuncs whose parameters depend on a spec, which TVMScript's decorator cannot do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as builder_tirx
from tvm.tirx import PrimFunc

Parameter = tuple[str, Sequence[int | str], str]  # name, shape (a string is a symbolic size), dtype


def prim_func(
    parameters: Sequence[Parameter],
    emit: Callable[[dict[str, Any], dict[str, Any]], None],
) -> PrimFunc:
    """Return a PrimFunc with tensor `parameters`; `emit(buffers, sizes)` writes its body.

    Both mappings are by name; `sizes` has the symbolic sizes, int64.
    """
    sizes: dict[str, Any] = {}

    def size(d: int | str) -> Any:
        if isinstance(d, str):
            return sizes[d] if d in sizes else sizes.setdefault(d, T.int64())
        return T.int64(d)

    with IRBuilder() as builder:
        with builder_tirx.prim_func(is_private=True, s_tir=True):
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            handles = [builder_tirx.arg(name, T.handle()) for name, _, _ in parameters]
            buffers = {
                name: T.match_buffer(handle, [size(d) for d in shape], dtype)
                for handle, (name, shape, dtype) in zip(handles, parameters, strict=True)
            }
            emit(buffers, sizes)
    func: PrimFunc = builder.get()
    return func

"""Pooling: one vector of each text, on CPUs."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import PrimFunc

from wherry.ops import PoolSpec

from . import vector as v
from .function import Parameter, prim_func
from .isa import Isa


def pool(spec: PoolSpec, isa: Isa) -> PrimFunc:
    """Return the kernel (x [n, d], sequences [n], query_indptr [r + 1], rows [m], out [m, d])."""
    parameters: list[Parameter] = [
        ("x", ("n", spec.dim), "float32"),
        ("sequences", ("n",), "int32"),
        ("query_indptr", ("r1",), "int32"),
        ("rows", ("m",), "int32"),
        ("out", ("m", spec.dim), "float32"),
    ]

    def emit(b: dict[str, Any], sizes: dict[str, Any]) -> None:
        with T.serial(sizes["m"]) as i, T.sblock("row"):
            T.reads()
            T.writes()
            sequence = v.let(b["sequences"][b["rows"][i]])
            begin = v.let(T.Cast("int64", b["query_indptr"][sequence]))
            end = v.let(T.Cast("int64", b["query_indptr"][sequence + 1]))

            def columns(column: Any, lanes: int) -> None:
                span = v.span(column, lanes)
                pooled = _pooled(spec, isa, b["x"], begin, end, span, lanes)
                T.buffer_store(b["out"], pooled, [i, span])

            v.over_columns(spec.dim, columns)

    return prim_func(parameters, emit)


def _pooled(spec: PoolSpec, isa: Isa, x: Any, begin: Any, end: Any, span: Any, lanes: int) -> Any:
    """Emit the pooled elements `span` of the rows begin to end - 1 of x, in ascending order."""
    mode = spec.mode
    if mode in ("cls", "last"):
        return x[begin if mode == "cls" else end - 1, span]
    acc, place = T.sblock_alloc_buffer((lanes,), "float32"), v.span(0, lanes)
    start = x[begin, span] if mode == "max" else v.splat(0.0, lanes)
    T.buffer_store(acc, start, [place])
    with T.serial(end - begin) as i:
        row = x[begin + i, span]
        if mode == "max":
            added = v.maximum(row, acc[place])
        elif mode == "weightedmean":
            weight = v.splat(T.Cast("float32", i + 1), lanes)
            added = v.fma(row, weight, acc[place], lanes, isa.fma)
        else:
            added = acc[place] + row
        T.buffer_store(acc, added, [place])
    if mode == "max":
        return acc[place]
    count = T.Cast("float32", end - begin)
    if mode == "mean_sqrt_len":
        count = v.square_root(count, 1)
    elif mode == "weightedmean":
        count = count * (count + T.float32(1)) * T.float32(0.5)
    return acc[place] / v.splat(count, lanes)

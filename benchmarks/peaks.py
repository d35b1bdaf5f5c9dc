"""Measures what this CPU's units do at most: multiply-adds in registers, nothing from memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm.script import tirx as T
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.compiler.library.build import code_generation
from wherry.targets.kernels.cpu import Isa
from wherry.targets.kernels.cpu import bf16_tiles as tiles
from wherry.targets.kernels.cpu import vector as v
from wherry.targets.kernels.cpu.function import prim_func
from wherry.targets.kernels.cpu.int8_dot import int8_dot

TASKS = 64  # of a parallel loop
STEPS = 20_000  # of a task
_SUMS = 12  # independent ones, which hide the latency
_WORDS = 8  # operands of a step's dot products


@dataclass(frozen=True, slots=True)
class Unit:
    """A kind of multiply-add."""

    emit: Callable[[Isa, Any, Any], None]  # emits STEPS steps; arguments: operands and results
    operations: Callable[[Isa], int]  # of a step; a multiply-add is two


def _int8(isa: Isa, source: Any, sums: Any) -> None:
    dot = int8_dot(isa, "q4")
    assert dot is not None, "the caller asks for what the CPU has"
    operands = [v.let(source[v.span(16 * j, dot.lanes)]) for j in range(_WORDS)]
    word = v.let(source[v.span(128, dot.lanes)])
    with T.serial(STEPS), T.sblock("step"):
        T.reads()
        T.writes()
        for own in sums:
            at = [v.span(0, dot.lanes)]
            T.buffer_store(own, dot.compute(own[at[0]], operands, lambda _: word), at)


def _float(isa: Isa, source: Any, sums: Any) -> None:
    a, b = (
        v.let(T.reinterpret(f"float32x{isa.lanes}", source[v.span(16 * i, isa.lanes)]))
        for i in (0, 1)
    )
    with T.serial(STEPS), T.sblock("step"):
        T.reads()
        T.writes()
        for own in sums:
            at = v.span(0, isa.lanes)
            total = T.reinterpret(f"float32x{isa.lanes}", own[at])
            total = v.fma(a, b, total, isa.lanes, isa.fma)
            T.buffer_store(own, T.reinterpret(f"int32x{isa.lanes}", total), [at])


def _bf16(_isa: Isa, _source: Any, _sums: Any) -> None:
    tiles.configure()
    for i in range(8):
        tiles.instruction("tilezero", T.int8(i))
    with T.serial(STEPS):
        for i, (a, b) in enumerate(((4, 6), (4, 7), (5, 6), (5, 7))):
            tiles.instruction("tdpbf16ps", T.int8(i), T.int8(a), T.int8(b))
    tiles.instruction("tilerelease")


def _dot_lanes(isa: Isa) -> int:
    dot = int8_dot(isa, "q4")
    return dot.lanes if dot else 0


UNITS = {
    "int8": Unit(_int8, lambda isa: 2 * 4 * _dot_lanes(isa) * _WORDS * _SUMS),
    "float32": Unit(_float, lambda isa: 2 * isa.lanes * _SUMS),
    "bf16": Unit(_bf16, lambda _: 2 * 4 * 16 * 16 * 32),
}


def _kernel(unit: Unit, isa: Isa) -> PrimFunc:
    def emit(b: dict[str, Any], _sizes: dict[str, Any]) -> None:
        with T.parallel(TASKS) as task, T.sblock("task"):
            T.reads()
            T.writes()
            sums = [T.sblock_alloc_buffer((16,), "int32") for _ in range(_SUMS)]
            for own in sums:
                T.buffer_store(own, T.broadcast(T.int32(0), 16), [v.span(0, 16)])
            unit.emit(isa, b["source"], sums)
            for i, own in enumerate(sums):
                T.buffer_store(b["out"], own[v.span(0, 16)], [task, i, v.span(0, 16)])

    parameters = [("source", (144,), "int32"), ("out", (TASKS, _SUMS, 16), "int32")]
    return prim_func(parameters, emit)


def compiled(func: PrimFunc, device: Any) -> Any:
    """Return the compiled function for a target's device."""
    target = Target(dict(device))
    module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    with code_generation(target):
        return tvm.compile(module, target=target)["kernel"]


def peak(name: str, isa: Isa, device: Any, passes: int = 5) -> float:
    """Return operations per second of a unit of `UNITS`, with the threads of TVM's pool."""
    unit = UNITS[name]
    run = compiled(_kernel(unit, isa), device)
    source = tvm.runtime.tensor(np.zeros(144, np.int32))
    out = tvm.runtime.tensor(np.zeros((TASKS, _SUMS, 16), np.int32))
    best = float("inf")
    for _ in range(passes):
        begin = time.perf_counter()
        run(source, out)
        best = min(best, time.perf_counter() - begin)
    return unit.operations(isa) * STEPS * TASKS / best

"""Emits kernels whose lanes are weights of different groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as builder_tirx

Expr = Any  # TVM expressions, which have no types for mypy
Parameter = tuple[str, Sequence[int | str], str]  # name, shape (a string is a size), dtype


@dataclass(frozen=True, slots=True)
class SimdVectors:
    """Vectors of some lanes."""

    lanes: int

    def span(self, row: Expr) -> Expr:
        """Return the indexes of a row of a buffer that has one vector a row."""
        return T.ramp(row * self.lanes, 1, self.lanes)

    def of(self, value: Expr, dtype: str = "float32") -> Expr:
        """Return a number in all lanes."""
        number = getattr(T, dtype)(value) if isinstance(value, int | float) else value
        return T.broadcast(number, self.lanes)

    def cast(self, value: Expr, dtype: str) -> Expr:
        """Convert to another dtype."""
        return T.Cast(f"{dtype}x{self.lanes}", value)

    def bits(self, value: Expr, dtype: str) -> Expr:
        """Return the same bits as another dtype."""
        return T.reinterpret(f"{dtype}x{self.lanes}", value)

    def buffer(self, rows: int, dtype: str = "float32") -> Any:
        """Allocate a buffer of one vector a row."""
        return T.sblock_alloc_buffer((rows * self.lanes,), dtype)

    def load(self, buffer: Any, row: Expr = 0) -> Expr:
        """Return a row of a buffer."""
        return buffer[self.span(row)]

    def store(self, buffer: Any, value: Expr, row: Expr = 0) -> None:
        """Emit the change of a row of a buffer."""
        T.buffer_store(buffer, value, [self.span(row)])

    def let(self, value: Expr, dtype: str = "float32") -> Any:
        """Emit a value as a buffer of one row, which LLVM keeps in a register."""
        buffer = self.buffer(1, dtype)
        self.store(buffer, value)
        return buffer


def function(parameters: Sequence[Parameter], emit: Callable[[dict[str, Any]], None]) -> Any:
    """Return a PrimFunc; `emit` writes its body, for buffers and sizes by name."""
    variables: dict[str, Any] = {}

    def size(d: int | str) -> Any:
        return variables.setdefault(d, T.int64()) if isinstance(d, str) else T.int64(d)

    with IRBuilder() as builder:
        with builder_tirx.prim_func(is_private=True, s_tir=True):
            T.func_attr({"tirx.noalias": True, "tirx.is_scheduled": True})
            handles = [builder_tirx.arg(name, T.handle()) for name, _, _ in parameters]
            for handle, (name, shape, dtype) in zip(handles, parameters, strict=True):
                # NumPy's arrays are aligned to an element
                variables[name] = T.match_buffer(handle, [size(d) for d in shape], dtype, align=4)
            with T.sblock("whole"):
                T.reads()
                T.writes()
                emit(variables)
    return builder.get()


def each(count: Expr, emit: Callable[[Expr], None]) -> None:
    """Emit a loop over `count` numbers."""
    with T.serial(count) as i, T.sblock("each"):
        T.reads()
        T.writes()
        emit(i)

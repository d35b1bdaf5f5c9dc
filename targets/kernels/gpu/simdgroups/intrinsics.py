"""Intrinsics of Apple's SIMD groups: every lane of a group must reach them."""

from __future__ import annotations

from typing import Any

from tvm.backend.metal import op as metal
from tvm.script import tirx as T

from .plan import SIDE


class MatrixRegisters:
    """Several float32 matrices [8, 8] in the registers of a SIMD group."""

    def __init__(self, count: int) -> None:
        self.count = count
        size = count * SIDE * SIDE
        self._memory = T.sblock_alloc_buffer((size,), "float32", scope="metal.simdgroup")

    def clear(self) -> None:
        """Emit zeros for all matrices."""
        for i in range(self.count):
            T.evaluate(metal.make_filled_simdgroup_matrix(self._memory.data, i, T.float32(0)))

    def load(self, i: int, shared: Any, at: Any, stride: int) -> None:
        """Emit matrix i = shared[at + stride * row + column]."""
        place = shared.access_ptr("r", offset=at)
        T.evaluate(metal.simdgroup_load(self._memory.data, i, place, stride))

    def store(self, i: int, shared: Any, at: Any, stride: int) -> None:
        """Emit shared[at + stride * row + column] = matrix i."""
        place = shared.access_ptr("w", offset=at)
        T.evaluate(metal.simdgroup_store(self._memory.data, i, place, stride))

    def multiply(self, i: int, a: MatrixRegisters, j: int, b: MatrixRegisters, k: int) -> None:
        """Emit matrix i += a[j] b[k]; the device chooses the order of the eight products."""
        d = self._memory.data
        T.evaluate(
            metal.simdgroup_multiply_accumulate(d, i, a._memory.data, j, b._memory.data, k, d, i)
        )


def shuffle_xor(value: Any, distance: int) -> Any:
    """Emit a shuffle: the value of the lane whose number differs in the bit `distance`."""
    return T.call_pure_extern("float32", "simd_shuffle_xor", value, T.uint16(distance))

"""AMD's matrix units: a wave multiplies 16 x 16 matrices of float16 and adds them to float32.

    c[16, 16] += a[16, 16] b[16, 16]

Lane l has `own` neighbouring elements of row l mod 16 of a, as many of column l mod 16 of b, and
`sums` elements of column l mod 16 of c. Units differ in which elements these are.

Sources: AMD's "RDNA3 Instruction Set Architecture", 7.9; "RDNA4 Instruction Set Architecture",
7.12; "AMD Instinct MI300 Instruction Set Architecture", 7.1; LLVM's "User Guide for AMDGPU
Backend" for the intrinsics' operands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.script import tirx as T

from .. import emit as e

SIDE = 16


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """One matrix instruction, and which elements of its matrices each lane has."""

    intrinsic: str  # name of LLVM's intrinsic
    lanes: int  # threads of a wave
    parts: int  # parts of k, one for each set of 16 lanes; 1: each set has all of k
    row_a_set: int  # rows of c between the first elements of neighbouring sets of 16 lanes
    row_a_sum: int  # rows of c between neighbouring elements of one lane
    flags: int = 0  # number of operands after the matrices, all of which are 0

    @property
    def own(self) -> int:
        """Return how many elements of a, and of b, a lane has."""
        return SIDE // self.parts

    @property
    def sums(self) -> int:
        """Return how many elements of c a lane has."""
        return SIDE * SIDE // self.lanes

    def first_k(self, lane: Any) -> Any:
        """Return the first k of a lane's elements of a and b."""
        return e.mod(e.div(lane, SIDE), self.parts) * self.own

    def row(self, lane: Any, i: int) -> Any:
        """Return the row of a lane's element i of c."""
        return e.div(lane, SIDE) * self.row_a_set + i * self.row_a_sum

    def multiply(self, c: Any, at: int, a: Any, a_at: int, b: Any, b_at: int) -> None:
        """Emit c += a b; a lane's elements begin at `at`, `a_at` and `b_at` of its buffers."""
        own = [
            buffer[T.ramp(first, 1, count)]
            for buffer, first, count in (
                (a, a_at, self.own),
                (b, b_at, self.own),
                (c, at, self.sums),
            )
        ]
        product = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id(self.intrinsic),
            *own,
            *[T.int32(0)] * self.flags,
            dtype=f"float32x{self.sums}",
        )
        T.buffer_store(c, product, [T.ramp(at, 1, self.sums)])


UNITS = {  # by the name in `GpuLimits.wave_matrices`
    "wmma": MatrixUnit("llvm.amdgcn.wmma.f32.16x16x16.f16", 32, parts=1, row_a_set=1, row_a_sum=2),
    "wmma12": MatrixUnit(
        "llvm.amdgcn.wmma.f32.16x16x16.f16", 32, parts=2, row_a_set=8, row_a_sum=1
    ),
    "mfma": MatrixUnit(
        "llvm.amdgcn.mfma.f32.16x16x16f16", 64, parts=4, row_a_set=4, row_a_sum=1, flags=3
    ),
}

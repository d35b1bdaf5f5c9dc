"""Properties of an instruction set that CPU kernels depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# Int8 dot product that the 4-bit kernels use; see int8_dot.py.
Dot = Literal["vnni512", "avxvnni", "avx2", "ssse3", "dotprod", "neon", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """Vector registers and dot product of a CPU."""

    lanes: int  # float32 elements of a vector register: 16, 8 or 4
    registers: int  # vector registers
    fma: bool  # fused multiply-add in hardware
    dot: Dot = "none"

    @property
    def accumulators(self) -> int:
        """Sixteen-lane accumulators that fit, with room for operands."""
        per_vector = 16 // self.lanes
        return max(1, (self.registers - self.registers // 4) // per_vector)

    @property
    def half(self) -> bool:
        """Whether vectors of float16 convert in hardware: F16C comes with AVX2, and NEON has it."""
        return self.fma


def isa_from_features(features: Iterable[str]) -> Isa:
    """Read LLVM's ("avx512vnni", "neon") or Linux's ("avx512_vnni", "asimd") feature names.

    Unknown features give the minimum of all targets: 128-bit vectors without FMA.
    """
    names = {f.lstrip("+").replace("_", "").replace(".", "") for f in features if f[:1] != "-"}
    if {"avx512f", "avx512bw", "avx512vl"} <= names:
        vnni = "avx512vnni" in names
        return Isa(lanes=16, registers=32, fma=True, dot="vnni512" if vnni else "avx2")
    if {"avx2", "fma"} <= names:
        vnni = "avxvnni" in names
        return Isa(lanes=8, registers=16, fma=True, dot="avxvnni" if vnni else "avx2")
    if names & {"neon", "asimd"}:
        # smmla (i8mm) would need pairs of rows; sdot needs no reordering.
        dotprod = names & {"dotprod", "asimddp"}
        return Isa(lanes=4, registers=32, fma=True, dot="dotprod" if dotprod else "neon")
    return Isa(lanes=4, registers=16, fma=False, dot="ssse3" if "ssse3" in names else "none")

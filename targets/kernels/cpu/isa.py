"""Properties of a CPU's instruction set that kernels depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# Instruction set of the int8 dot product in integer linears; see int8_dot.py.
# "i8mm" has "dotprod", too, which single rows use.
Dot = Literal["vnni512", "avxvnni", "avx2", "ssse3", "i8mm", "dotprod", "neon", "none"]
_SIGNS = str.maketrans("", "", "_.-")  # what names of features differ in


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """Vector registers and int8 dot product of a CPU."""

    lanes: int  # float32 elements of a vector register: 16, 8 or 4
    registers: int  # number of vector registers
    fma: bool  # whether hardware has fused multiply-add
    dot: Dot = "none"
    # whether linears multiply float32 rows; `dot` says then how block formats are unpacked
    float_rows: bool = False
    vbmi: bool = False  # whether one instruction looks up bytes in a table of 64 (AVX512-VBMI)
    amx: bool = False  # whether it has matrix units for bfloat16, see bf16_tiles.py

    @property
    def accumulators(self) -> int:
        """Return how many 16-lane accumulators fit into registers, with room for operands."""
        per_vector = 16 // self.lanes
        return max(1, (self.registers - self.registers // 4) // per_vector)

    @property
    def half(self) -> bool:
        """Return whether hardware converts vectors of float16.

        F16C comes with AVX2, and NEON always converts them.
        """
        return self.fma


def isa_from_features(features: Iterable[str]) -> Isa:
    """Return the instruction set for LLVM's ("avx512vnni", "neon") or Linux's feature names.

    Linux's are, for example, "avx512_vnni" and "asimd". Without known features the result is the
    minimum of all targets: 128-bit vectors without FMA.
    """
    names = {f.lstrip("+").translate(_SIGNS) for f in features if f[:1] != "-"}
    if {"avx512f", "avx512bw", "avx512vl"} <= names:
        vnni = "avx512vnni" in names
        vbmi = vnni and "avx512vbmi" in names
        amx = vnni and {"amxtile", "amxbf16"} <= names
        dot: Dot = "vnni512" if vnni else "avx2"
        return Isa(lanes=16, registers=32, fma=True, dot=dot, vbmi=vbmi, amx=amx)
    if {"avx2", "fma"} <= names:
        vnni = "avxvnni" in names
        return Isa(lanes=8, registers=16, fma=True, dot="avxvnni" if vnni else "avx2")
    if names & {"neon", "asimd"}:
        dotprod = bool(names & {"dotprod", "asimddp"})
        dot = "i8mm" if dotprod and "i8mm" in names else "dotprod" if dotprod else "neon"
        return Isa(lanes=4, registers=32, fma=True, dot=dot)
    return Isa(lanes=4, registers=16, fma=False, dot="ssse3" if "ssse3" in names else "none")

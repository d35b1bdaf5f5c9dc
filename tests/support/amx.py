"""AMX's matrix units, emulated: kernels call functions of amx.c in place of their instructions."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm.script import tirx as T

from wherry.targets.kernels.cpu import Isa, bf16_tiles

_SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared"]


class Emulator:
    """The functions of amx.c, found by compiled kernels of this process."""

    def __init__(self, folder: Path) -> None:
        path = folder / "libamx.so"
        subprocess.run(["gcc", *_FLAGS, str(_SOURCE), "-lm", "-o", str(path)], check=True)
        self.functions = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self.functions.emulated_problem.restype = ctypes.c_char_p

    def check(self) -> None:
        """Raise AssertionError if an instruction was used in a wrong way since the last call."""
        problem = self.functions.emulated_problem().decode()
        assert not problem, problem

    def product(self, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return `c` after tdpbf16ps: c [16, 16] float32, a and b [16, 32] bits of bfloat16."""
        config = np.zeros(64, np.uint8)
        config[0], config[16:22:2], config[48:51] = 1, 64, 16
        tiles = [x.copy() for x in (c, a, b)]
        self.functions.emulated_ldtilecfg(config.ctypes.data_as(ctypes.c_void_p))
        for i, tile in enumerate(tiles):
            self._move("emulated_tileloadd64", i, tile)
        self.functions.emulated_tdpbf16ps(0, 1, 2)
        self._move("emulated_tilestored64", 0, tiles[0])
        self.functions.emulated_tilerelease()
        self.check()
        return tiles[0]

    def _move(self, name: str, i: int, tile: np.ndarray) -> None:
        pointer, stride = ctypes.c_void_p(tile.ctypes.data), ctypes.c_int64(64)
        getattr(self.functions, name)(ctypes.c_int8(i), pointer, stride)


Instruction = Callable[..., None]


def call(name: str, *arguments: Any) -> None:
    """Emit a call of the emulator, in place of `bf16_tiles.instruction`."""
    T.evaluate(T.call_extern("void", f"emulated_{name}", *arguments))


def with_matrix_unit(isa: Isa) -> Isa:
    """Return what this CPU has, and AMX; skip where LLVM cannot split vectors of 512 bits."""
    if isa.lanes < 16:
        pytest.skip("this CPU lacks AVX-512, which each CPU with AMX has")
    return replace(isa, amx=True)


@contextmanager
def emulated(instruction: Instruction = call) -> Iterator[None]:
    """Make kernels that are emitted here call the emulator; `instruction` emits a call."""
    real = bf16_tiles.instruction
    bf16_tiles.instruction = instruction
    try:
        yield
    finally:
        bf16_tiles.instruction = real


def permitted() -> bool:
    """Ask the system to let this process use real tiles, as engine/support/matrix_units.h does."""
    request, tile_data, arch_prctl = 0x1023, 18, 158
    return ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0


def rounded(values: np.ndarray) -> np.ndarray:
    """Return the bits of the nearest bfloat16, halves away from zero: uint16."""
    return ((values.astype("float32").view("uint32") + 0x8000) >> 16).astype("uint16")


def of_bits(bits: np.ndarray) -> np.ndarray:
    """Return bfloat16 as float64."""
    return (bits.astype("uint32") << 16).view("float32").astype("float64")

"""Kernels of 64-bit Arm, run by an emulator of a chosen core."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.compiler.library.build import code_generation
from wherry.targets.kernels.cpu import Isa

_SOURCE = Path(__file__).with_name("arm_kernel.c")
_CODES = {"i": 0, "u": 1, "f": 2}  # DLPack's
_COMPILER, _EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"


@dataclass(frozen=True)
class ArmMachine:
    """A core of the emulator, and what kernels are generated for."""

    isa: Isa
    features: tuple[str, ...]  # LLVM's names
    core: str  # the emulator's name
    folder: Path  # for files

    @property
    def target(self) -> Target:
        """Return TVM's target."""
        attributes = [f"+{feature}" for feature in ("neon", *self.features)]
        kind = {"kind": "llvm", "mcpu": "generic", "mtriple": "aarch64-unknown-linux-gnu"}
        return Target({**kind, "mattr": attributes})

    def build(self, func: PrimFunc) -> Callable[..., list[np.ndarray]]:
        """Compile; the result takes NumPy arrays, and returns them with the last as computed."""
        program = self.folder / f"{self.core}-{len(list(self.folder.iterdir()))}"
        module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
        with code_generation(self.target):
            code = tvm.compile(module, target=self.target).mod
        code.write_to_file(str(program.with_suffix(".o")), "o")
        include = Path(tvm_ffi.__file__).parent / "include"
        command = [_COMPILER, "-O1", "-static", f"-I{include}", str(_SOURCE)]
        command += [str(program.with_suffix(".o")), "-lm", "-o", str(program)]
        subprocess.run(command, check=True)

        def call(*arrays: np.ndarray) -> list[np.ndarray]:
            given, results = program.with_suffix(".in"), program.with_suffix(".out")
            given.write_bytes(b"".join(map(_tensor, arrays)))
            run = [_EMULATOR, "-cpu", self.core, str(program), str(given), str(results)]
            done = subprocess.run(run, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
            last = np.frombuffer(results.read_bytes(), arrays[-1].dtype)
            return [*arrays[:-1], last.reshape(arrays[-1].shape)]

        return call


def _tensor(array: np.ndarray) -> bytes:
    kind = array.dtype
    head = [array.ndim, _CODES[kind.kind], 8 * kind.itemsize, array.nbytes, *array.shape]
    return np.array(head, "int64").tobytes() + np.ascontiguousarray(array).tobytes()

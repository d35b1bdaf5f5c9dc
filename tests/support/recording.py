"""Kernels as tests run them, written down: `pytest --record-kernels DIR --record-target TARGET`.

A machine with that device, and without TVM's compiler, runs them again (`benchmarks/gpu/`). What a
kernel gave on this machine's device, where the test has compared it with its reference, is what it
has to give there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.targets.target import find

from . import gpu

CALLS = 2  # of a kernel that are kept
LARGEST = 1 << 20  # bytes of arrays of a call that is kept
# Attribute of a PrimFunc: JSON of the columns of uint32 that hold bits of inexact float32, by the
# number of the parameter.
FLOAT_BITS = "float_bits"
_recorder: Recorder | None = None
Build = Callable[[PrimFunc], Callable[..., list[np.ndarray]]]


class Recorder:
    """A folder with a library and the calls of each kernel that tests build."""

    def __init__(self, folder: Path, target: str) -> None:
        self.folder, self.preset = folder, find(target)
        folder.mkdir(parents=True, exist_ok=True)

    def recorded(self, build: Build) -> Build:
        """`build`, whose kernels leave what they are called with."""

        def built(func: PrimFunc) -> Callable[..., list[np.ndarray]]:
            kernel, place, calls = build(func), self._place(func), []

            def call(*arrays: np.ndarray) -> list[np.ndarray]:
                before = [np.array(a) for a in arrays]
                results = kernel(*arrays)
                if len(calls) < CALLS and sum(a.nbytes for a in before) <= LARGEST:
                    _keep(place / f"{_next(place)}.npz", before, results)
                    calls.append(None)
                return results

            return call

        return built

    def _place(self, func: PrimFunc) -> Path:
        """The folder of a kernel, with its library for the target."""
        place = self.folder / f"{tvm_ffi.structural_hash(func) & (1 << 64) - 1:016x}"
        if not (place / "kernel.so").exists():
            place.mkdir(exist_ok=True)
            edited = gpu.EDITS.get(self.preset.device["kind"], lambda f: f)(func)
            module = tvm.IRModule({"kernel": edited.with_attr("global_symbol", "kernel")})
            target = Target(dict(self.preset.device), host=dict(self.preset.host))
            with self.preset.toolchain.active() if self.preset.toolchain else nullcontext():
                tvm.compile(module, target=target).export_library(str(place / "kernel.so"))
            test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
            description = {
                "test": test,
                FLOAT_BITS: json.loads(str(func.attrs.get(FLOAT_BITS, "{}"))),
            }
            (place / "kernel.json").write_text(json.dumps(description))
        return place


def _next(place: Path) -> int:
    return len(list(place.glob("*.npz")))


def _keep(path: Path, before: list[np.ndarray], after: list[np.ndarray]) -> None:
    """Inputs, and of the outputs those that the kernel has changed."""
    arrays: dict[str, Any] = {f"in{i}": a for i, a in enumerate(before)}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.tobytes() != new.tobytes():
            arrays[f"out{i}"] = new
    np.savez(path, **arrays)  # the bundle is compressed as a whole: a cache is in it four times


def begin(folder: str, target: str) -> None:
    """Record from now on."""
    global _recorder
    _recorder = Recorder(Path(folder), target)


def recorded(build: Build) -> Build:
    """`build`, recorded if that was asked for."""
    return _recorder.recorded(build) if _recorder else build

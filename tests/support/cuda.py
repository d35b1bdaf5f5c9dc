"""CUDA in tests: the source that TVM generates, compiled as C++ and run by an emulator."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import tvm
import tvm_ffi
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.compiler.library.device_sources import device_sources
from wherry.targets.target import find
from wherry.targets.toolchains.cuda import OVERLAP, WAIT
from wherry.targets.toolchains.device_code import DeviceCode, parse

from .gpu import on_arrays

HERE = Path(__file__).parents[1] / "targets" / "cuda"
AXES = [f"{scope}.{axis}" for scope in ("blockIdx", "threadIdx") for axis in "xyz"]
DYNAMIC = "tirx.use_dyn_shared_memory"
_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _compiled(sources: list[Path], out: Path, *options: str | Path) -> Path:
    command = ["g++", "-std=c++20", "-shared", "-fPIC", "-O1", "-march=native", *options]
    command += ["-ffp-contract=off", "-fno-strict-aliasing"]  # as CUDA has it
    done = subprocess.run(
        [*map(str, command), *map(str, sources), "-o", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out


@cache
def folder() -> Path:
    """Where libraries lie as long as this process lives."""
    directory = tempfile.TemporaryDirectory(prefix="wherry-cuda-")
    _KEPT.append(directory)
    return Path(directory.name)


@cache
def device() -> tvm.runtime.Device:
    """CUDA device 0, emulated."""
    assert shutil.which("g++"), "what compiles the core is here"
    packages = [Path(p.__file__).parent for p in (tvm_ffi, tvm)]
    options: list[str | Path] = [f"-isystem{p}/include" for p in packages]
    for package, library in zip(packages, ("tvm_ffi", "tvm_runtime"), strict=True):
        options += [f"-L{package}/lib", f"-l{library}", f"-Wl,-rpath,{package}/lib"]
    sources = [HERE / f"{name}.cc" for name in ("device", "driver", "emulator", "queue")]
    path = _compiled(sources, folder() / "libcuda_device.so", *options)
    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    return tvm.device("cuda", 0)


def as_cplusplus(code: DeviceCode) -> str:
    """The source, and what makes functions of its kernels."""
    text = code.code.decode().replace(WAIT, "").replace("extern __shared__", "EXTERN_SHARED")
    # A pointer to what the launch gives.
    text = re.sub(
        r"EXTERN_SHARED[^;]*?(\w+) (\w+)\[\];", r"\1* \2 = (\1*)given_shared_memory;", text
    )
    text = re.sub(r"__shared__ (alignas\(\d+\)) ", r"\1 __shared__ ", text)  # as g++ has it
    places = {name: i for i, name in enumerate([*AXES, DYNAMIC])}
    lines = ["#include <cuda.h>", '#include "kernel.h"', text]
    for name, tags in code.launches.items():
        given = (str(places[tag]) for tag in tags if tag != OVERLAP)  # here launches never overlap
        lines.append(f"CUDA_KERNEL({', '.join([name, *given])})")
    return "\n".join(lines) + "\n"


def load(blob: bytes) -> tvm.runtime.Module:
    """What `ffi.Module.load_from_bytes.cuda` does where there is a GPU."""
    path = folder() / f"kernels{len(list(folder().iterdir()))}.so"
    source = path.with_suffix(".cc")
    source.write_text(as_cplusplus(parse(bytes(blob))))
    library = folder() / "libcuda_device.so"
    _compiled([source], path, f"-I{HERE}/include", f"-I{HERE}", library, f"-Wl,-rpath,{folder()}")
    return tvm_ffi.load_module(str(path))


@contextmanager
def loaded_by_emulator() -> Iterator[None]:
    """TVM keeps the source, and loads it with the emulator."""
    name, kind = "TVM_COMPILE_FORCE_FALLBACK", "ffi.Module.load_from_bytes.cuda"
    before = tvm_ffi.get_global_func(kind, allow_missing=True)
    os.environ[name] = "1"
    tvm_ffi.register_global_func(kind, load, override=True)
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            tvm_ffi.register_global_func(kind, before, override=True)


def source(func: PrimFunc) -> str:
    """CUDA C++ of a kernel."""
    module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    target = Target(dict(find("cuda:sm_80").device), host={"kind": "llvm"})
    with loaded_by_emulator():
        return device_sources(tvm.compile(module, target=target).mod)["cu"]


def build(func: PrimFunc) -> Callable[..., list[np.ndarray]]:
    """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
    there = device()
    module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    preset = find("cuda:sm_80")
    target = Target(dict(preset.device), host={"kind": "llvm"})
    with loaded_by_emulator(), tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "kernel.so"
        tvm.compile(module, target=target).export_library(str(path))
        kernel = tvm.runtime.load_module(str(path))["kernel"]
    return on_arrays(kernel, there)

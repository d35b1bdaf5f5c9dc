"""Metal in tests: the MSL that TVM generates, compiled as C++ by clang and run by an emulator."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.target import Target
from tvm.tirx import PrimFunc

from wherry.targets.target import find

from .gpu import on_arrays

REQUIRED = "WHERRY_REQUIRE_CLANG"  # set in CI, where PoCL brings clang
HERE = Path(__file__).parents[1] / "targets" / "metal"
# 15 is the first with _Float16 on x86-64; a plain clang++ may be older.
CLANGS = (*(f"clang++-{v}" for v in range(25, 14, -1)), "clang++")
# No contraction: what is fused is written so. No attributes: those of MSL are not clang's.
KERNEL_FLAGS = ("-O1", "-march=native", "-ffp-contract=off", "-Wno-unknown-attributes")
AXES = [f"{scope}.{axis}" for scope in ("blockIdx", "threadIdx") for axis in "xyz"]


@cache
def clang() -> str:
    """Path of clang++, or a skip."""
    program = next(filter(None, map(shutil.which, CLANGS)), None)
    if program is None:
        message = "no clang++ to compile Metal's language with; apt-get install clang"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    return program


def compiled(sources: list[Path], out: Path, *options: str | Path) -> Path:
    """A shared library of C++ sources."""
    command = [clang(), "-std=c++20", "-shared", "-fPIC", "-Wall", "-Werror", *options]
    done = subprocess.run(
        [*map(str, command), *map(str, sources), "-o", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out


def package_options() -> list[str]:
    """Compile and link with TVM's run time and tvm-ffi."""
    packages = [Path(p.__file__).parent for p in (tvm_ffi, tvm)]
    options = [f"-isystem{p}/include" for p in packages]
    for package, library in zip(packages, ("tvm_ffi", "tvm_runtime"), strict=True):
        options += [f"-L{package}/lib", f"-l{library}", f"-Wl,-rpath,{package}/lib"]
    return options


@cache
def device() -> tvm.runtime.Device:
    """Metal device 0, emulated."""
    sources = [HERE / "device.cc", HERE / "emulator.cc"]
    options = (f"-I{HERE}", *package_options())
    path = compiled(sources, folder() / "libmetal_device.so", "-O1", *options)
    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    tvm_ffi.register_global_func("ffi.Module.load_from_bytes.metal", load)
    return tvm.device("metal", 0)


@contextmanager
def lanes(count: int) -> Iterator[None]:
    """Kernels that run in this thread have SIMD groups of so many threads, as other GPUs have."""
    device()
    library = ctypes.CDLL(str(folder() / "libmetal_device.so"))
    library.metal_set_lanes(count)
    try:
        yield
    finally:
        library.metal_set_lanes(32)


@cache
def folder() -> Path:
    """Where libraries lie as long as this process lives."""
    directory = tempfile.TemporaryDirectory(prefix="wherry-metal-")
    _KEPT.append(directory)
    return Path(directory.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def load(blob: bytes) -> tvm.runtime.Module:
    """What `ffi.Module.load_from_bytes.metal` does on an Apple device."""
    return tvm_ffi.load_module(str(kernel_library(as_cplusplus(kernels(blob)))))


def kernel_library(text: str) -> Path:
    """A library of what `as_cplusplus` made."""
    path = folder() / f"kernels{len(list(folder().iterdir()))}.so"
    source = path.with_suffix(".cc")
    source.write_text(text)
    library = folder() / "libmetal_device.so"
    warnings = ("-Wdouble-promotion", "-Wno-unused", "-Wno-parentheses-equality")
    options = (*KERNEL_FLAGS, *warnings, f"-I{HERE}", str(library), f"-Wl,-rpath,{folder()}")
    return compiled([source], path, *options)


def kernels(blob: bytes) -> dict[str, tuple[list[str], str]]:
    """Launch parameters and MSL of each kernel, by name, of what TVM wrote into a library."""
    at = 0

    def number(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(form, blob, at)
        at += struct.calcsize(form)
        return value

    def text() -> str:
        nonlocal at
        size = number("<Q")
        at += size
        return blob[at - size : at].decode()

    assert text() == "metal"
    tags = {}
    for _ in range(number("<Q")):
        name = text()
        assert text() == name
        for _ in range(number("<Q")):
            number("<I")  # the type of an argument: the kernel's signature has it
        tags[name] = [text() for _ in range(number("<Q"))]
        for _ in range(number("<Q")):
            number("<i")
    sources = {text(): text() for _ in range(number("<Q"))}
    assert sources.keys() == tags.keys()
    return {name: (tags[name], source) for name, source in sources.items()}


def as_cplusplus(parts: dict[str, tuple[list[str], str]]) -> str:
    """One source of all kernels, each in a namespace: they define the same names."""
    text = ["#include <kernel.h>"]
    if any("waves_" in source for _, source in parts.values()):
        text.append("#include <waves.h>")
    if any("matrices_begin" in source for _, source in parts.values()):
        text.append("#include <matrices.h>")
    for i, (name, (tags, source)) in enumerate(parts.items()):
        axes = ", ".join(str(AXES.index(tag)) for tag in tags)
        text += [
            f"namespace kernel_{i} {{",
            f'#define threadgroup static __attribute__((section("group_{i}")))',
            f'#line 1 "{name}"',
            re.sub(r"\(threadgroup (\w+\*)\)", r"(\1)", source),  # of a cast, not of a variable
            "#undef threadgroup",
            "}",
            f"METAL_KERNEL({i}, {name}, {axes})",
        ]
    return "\n".join(text) + "\n"


def build(func: PrimFunc) -> Callable[..., list[np.ndarray]]:
    """Compile; the result takes NumPy arrays and returns them all as the kernel left them."""
    there = device()
    module = tvm.IRModule({"kernel": func.with_attr("global_symbol", "kernel")})
    target = Target(dict(find("metal").device), host={"kind": "llvm"})
    with tempfile.TemporaryDirectory() as scratch:  # the compiler's own module cannot run
        path = Path(scratch) / "kernel.so"
        tvm.compile(module, target=target).export_library(str(path))
        kernel = tvm.runtime.load_module(str(path))["kernel"]
    return on_arrays(kernel, there)

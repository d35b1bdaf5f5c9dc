"""Opens TVM's runtime for a device without importing TVM."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

from wherry.errors import ToolchainError

from . import cuda_driver
from .plugins import PLUGINS, file_name, open_library, open_plugin

# Devices whose libraries are for programs that bring a TVM runtime; TVM's package has one for Metal
# on macOS.
WITHOUT_RUNTIME = ("rocm", "webgpu", *(() if sys.platform == "darwin" else ("metal",)))


def _package_library(
    package: str, stem: str, distribution: str = "apache-tvm==0.27.0.post1"
) -> Path:
    """Find a shared library in the `lib` folder of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ToolchainError(
            f"The Python package {package} is not installed. Type: pip install {distribution}"
        )
    path = Path(spec.origin).parent / "lib" / file_name(stem)
    if not path.is_file():
        raise ToolchainError(f"{package} is installed without {path.name}; looked for {path}")
    return path


def find_object_linker() -> Path:
    """Find the library that links object files in a process, LLVM's ORC.

    Raises:
        ToolchainError: its package is not installed.
    """
    package = "tvm_ffi_orcjit"
    return _package_library(package, package, "apache-tvm-ffi-orcjit==0.1.3")


@cache
def open_object_linker() -> None:
    """Open the linker that the core needs for `model.tar`; raises as `find_object_linker`."""
    _open_ffi()
    open_library(find_object_linker())


def _open_ffi() -> None:
    open_library(_package_library("tvm_ffi", "tvm_ffi"))


@cache
def open_runtime(kind: str) -> None:
    """Open TVM's runtime for a device of `kind` ("cpu", "cuda", "metal", "opencl").

    Plugins drive devices that TVM's wheel has no runtime for. Only libraries are opened: importing
    tvm_ffi would import an installed PyTorch (1.2 s), and importing tvm the compiler.

    Raises:
        ToolchainError: a library is missing; the message says what to type.
    """
    if kind in WITHOUT_RUNTIME:
        raise ToolchainError(
            f"This machine has no run time for {kind}: a library for it is for programs that "
            "bring one. AMD's and Apple's GPUs run models through Vulkan here. "
            "Type: --target vulkan"
        )
    _open_ffi()
    open_library(_package_library("tvm", "tvm_runtime"))
    if kind in PLUGINS:
        open_plugin(kind)
    elif kind != "cpu":
        library = _package_library("tvm", f"tvm_runtime_{kind}")
        if kind == "cuda":
            cuda_driver.open_libraries()
        open_library(library)

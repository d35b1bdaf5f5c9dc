"""Finding and opening libwherry and the libraries it stands on, without importing TVM."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from wherry.errors import ToolchainError
from wherry.plugins import PLUGINS, file_name, find_core, open_library, open_plugin

from .core_native import bind


def _package_library(package: str, stem: str) -> Path:
    """A shared library in the `lib` folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ToolchainError(
            f"The Python package {package} is not installed. "
            "Type: pip install apache-tvm==0.27.0.post1"
        )
    path = Path(spec.origin).parent / "lib" / file_name(stem)
    if not path.is_file():
        raise ToolchainError(f"{package} is installed without {path.name}; looked for {path}")
    return path


@cache
def open_runtime(kind: str) -> None:
    """Open TVM's run time for a device of `kind` ("cpu", "cuda", "opencl").

    Devices that TVM's package has no run time for come from a plugin of ours. The libraries alone
    are opened: importing tvm_ffi would import PyTorch where it is installed (1.2 s), and importing
    tvm the compiler.
    """
    open_library(_package_library("tvm_ffi", "tvm_ffi"))
    open_library(_package_library("tvm", "tvm_runtime"))
    if kind in PLUGINS:
        open_plugin(kind)
    elif kind != "cpu":
        open_library(_package_library("tvm", f"tvm_runtime_{kind}"))


@cache
def open_core() -> ctypes.CDLL:
    """Open libwherry; call `open_runtime` first."""
    return bind(open_library(find_core()))

"""TVM's run time for a device, opened without importing TVM."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from wherry import cuda_driver
from wherry.errors import ToolchainError
from wherry.plugins import PLUGINS, file_name, open_library, open_plugin

WITHOUT_RUNTIME = ("rocm", "metal", "webgpu")  # whose libraries are for programs that bring one


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

    Raises:
        ToolchainError: a library is not here; the message has what to type.
    """
    if kind in WITHOUT_RUNTIME:
        raise ToolchainError(
            f"This machine has no run time for {kind}: a library for it is for programs that "
            "bring one. AMD's and Apple's GPUs run models through Vulkan here. "
            "Type: --target vulkan"
        )
    open_library(_package_library("tvm_ffi", "tvm_ffi"))
    open_library(_package_library("tvm", "tvm_runtime"))
    if kind in PLUGINS:
        open_plugin(kind)
    elif kind != "cpu":
        library = _package_library("tvm", f"tvm_runtime_{kind}")
        cuda_driver.open_libraries()
        open_library(library)

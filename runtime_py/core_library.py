"""Finding and opening libwherry and the libraries it stands on, without importing TVM."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from functools import cache
from pathlib import Path

from wherry import settings
from wherry.errors import ToolchainError

from .core_native import bind

_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def _name(stem: str) -> str:
    return f"{stem}{_SUFFIX}" if sys.platform == "win32" else f"lib{stem}{_SUFFIX}"


def find_core() -> Path:
    """Path of libwherry: WHERRY_CORE, else in the installed package, else in build/dev.

    Raises:
        ToolchainError: it is in none of these places.
    """
    package = Path(settings.__file__).parent
    chosen = settings.core_library()
    repository = package.parents[1]
    places = (
        [chosen]
        if chosen
        else [
            folder / _name("wherry")
            for folder in (package, package / "lib", repository / "build" / "dev")
        ]
    )
    for place in places:
        if place.is_file():
            return place
    raise ToolchainError(
        f"{_name('wherry')}, the core, was not found; looked for\n"
        + "\n".join(f"  {place}" for place in places)
        + "\nIn a checkout, build it: cmake --preset dev && cmake --build --preset dev"
    )


def _package_library(package: str, stem: str) -> Path:
    """A shared library in the `lib` folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ToolchainError(
            f"The Python package {package} is not installed. "
            "Type: pip install apache-tvm==0.27.0.post1"
        )
    path = Path(spec.origin).parent / "lib" / _name(stem)
    if not path.is_file():
        raise ToolchainError(f"{package} is installed without {path.name}; looked for {path}")
    return path


def _open(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    except OSError as e:
        raise ToolchainError(f"{path} cannot be loaded: {e}") from e


@cache
def open_runtime(kind: str) -> None:
    """Open TVM's run time for a device of `kind` ("cpu", "cuda").

    The libraries alone are opened: importing tvm_ffi would import PyTorch where it is installed
    (1.2 s), and importing tvm the compiler.
    """
    _open(_package_library("tvm_ffi", "tvm_ffi"))
    _open(_package_library("tvm", "tvm_runtime"))
    if kind != "cpu":
        _open(_package_library("tvm", f"tvm_runtime_{kind}"))


@cache
def open_core() -> ctypes.CDLL:
    """Open libwherry; call `open_runtime` first."""
    return bind(_open(find_core()))

"""Finding and opening libwherry and the libraries it stands on, without importing TVM."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from wherry import settings
from wherry.errors import ToolchainError

from .core_native import bind

PLUGINS = ("opencl",)  # kinds of devices that libraries of ours drive
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def _name(stem: str) -> str:
    return f"{stem}{_SUFFIX}" if sys.platform == "win32" else f"lib{stem}{_SUFFIX}"


def _places(stem: str) -> list[Path]:
    """Where a library of ours may be: in the installed package, or in build/dev of a checkout."""
    package = Path(settings.__file__).parent
    folders = (package, package / "lib", package.parents[1] / "build" / "dev")
    return [folder / _name(stem) for folder in folders]


def find_core() -> Path:
    """Path of libwherry: WHERRY_CORE, else in the installed package, else in build/dev.

    Raises:
        ToolchainError: it is in none of these places.
    """
    chosen = settings.core_library()
    places = [chosen] if chosen else _places("wherry")
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
    """Open TVM's run time for a device of `kind` ("cpu", "cuda", "opencl").

    Devices that TVM's package has no run time for come from a plugin of ours. The libraries alone
    are opened: importing tvm_ffi would import PyTorch where it is installed (1.2 s), and importing
    tvm the compiler.
    """
    _open(_package_library("tvm_ffi", "tvm_ffi"))
    _open(_package_library("tvm", "tvm_runtime"))
    if kind in PLUGINS:
        _open_plugin(kind)
    elif kind != "cpu":
        _open(_package_library("tvm", f"tvm_runtime_{kind}"))


def _open_plugin(kind: str) -> None:
    """Open libwherry_<kind> and let it register its devices.

    Raises:
        ToolchainError: it was not built, or was built for another version of TVM.
    """
    places = [p.with_name(_name(f"wherry_{kind}")) for p in [find_core(), *_places("wherry")]]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise ToolchainError(
            f"{places[0].name}, which drives {kind} devices, was not found; looked for\n"
            + "\n".join(f"  {place}" for place in dict.fromkeys(places))
            + "\nBuild it, with apache-tvm installed: cmake --preset dev -DWHERRY_"
            f"{kind.upper()}=ON && cmake --build --preset dev"
        )
    register = getattr(_open(path), f"wherry_{kind}_open")
    register.restype, register.argtypes = ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_char_p)
    cache = settings.cache_dir() / "programs" / kind
    if problem := register(version("apache-tvm").encode(), str(cache).encode()):
        raise ToolchainError(f"{path}: {problem.decode(errors='replace')}")


@cache
def open_core() -> ctypes.CDLL:
    """Open libwherry; call `open_runtime` first."""
    return bind(_open(find_core()))

"""Finds Wherry's libraries: the engine, and plugins for devices that TVM's wheel does not support.

Importing this module imports neither TVM nor tvm_ffi.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

import wherry
from wherry.base import settings
from wherry.errors import ToolchainError

PLUGINS = ("opencl", "vulkan")  # kinds of devices that plugins drive
_NEEDS = {"vulkan": " and the headers of Vulkan (Debian: apt-get install libvulkan-dev)"}
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def file_name(stem: str) -> str:
    """Return the file name of a shared library on this system: libwherry.so."""
    return f"{stem}{_SUFFIX}" if sys.platform == "win32" else f"lib{stem}{_SUFFIX}"


def places(stem: str) -> list[Path]:
    """Return where a library may be: in the installed package, or in a checkout's build/dev."""
    package = Path(wherry.__file__).parent
    folders = (package, package / "lib", package.parents[1] / "build" / "dev")
    return [folder / file_name(stem) for folder in folders]


def find_core() -> Path:
    """Find libwherry: in WHERRY_CORE, the installed package, or build/dev.

    Raises:
        ToolchainError: the library is in none of these places.
    """
    chosen = settings.core_library()
    candidates = [chosen] if chosen else places("wherry")
    for place in candidates:
        if place.is_file():
            return place
    raise ToolchainError(
        f"{file_name('wherry')}, the core, was not found; looked for\n"
        + "\n".join(f"  {place}" for place in candidates)
        + "\nIn a checkout, build it: cmake --preset dev && cmake --build --preset dev"
    )


def find_host() -> Path:
    """Find libwherry_host, which serves requests, in the engine's folder.

    Raises:
        ToolchainError: the library was not found.
    """
    again = "Install wherry again, or in a checkout build it: cmake --workflow dev"
    return _beside_core("wherry_host", "which serves requests", again)


def find_plugin(kind: str) -> Path:
    """Find the plugin libwherry_<kind>, in the engine's folder.

    Raises:
        ToolchainError: the plugin was not built.
    """
    build = (
        f"Build it, with apache-tvm installed{_NEEDS.get(kind, '')}: "
        f"cmake --preset dev -DWHERRY_{kind.upper()}=ON && cmake --build --preset dev"
    )
    if sys.platform == "win32":
        build = "Windows has no such plugins yet. Type: --target cpu"
    return _beside_core(f"wherry_{kind}", f"which drives {kind} devices", build)


def _beside_core(stem: str, use: str, remedy: str) -> Path:
    name = file_name(stem)
    candidates = [core.with_name(name) for core in (find_core(), *places("wherry"))]
    path = next((place for place in candidates if place.is_file()), None)
    if path is None:
        raise ToolchainError(
            f"{name}, {use}, was not found; looked for\n"
            + "\n".join(f"  {place}" for place in dict.fromkeys(candidates))
            + f"\n{remedy}"
        )
    return path


def open_library(path: Path) -> ctypes.CDLL:
    """Open a library; its symbols are visible to all libraries opened later.

    Raises:
        ToolchainError: the message has the loader's error.
    """
    if sys.platform == "win32":  # whose libraries do not say where others are
        ffi = path.parent.parent / "tvm_ffi" / "lib"
        if ffi.is_dir():
            os.add_dll_directory(str(ffi))
    try:
        return ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    except OSError as e:
        raise ToolchainError(f"{path} cannot be loaded: {e}") from e


@cache
def open_plugin(kind: str) -> ctypes.CDLL:
    """Open the plugin libwherry_<kind>, which registers its devices; TVM's runtime must be loaded.

    Raises:
        ToolchainError: the plugin was not built, or was built for another version of TVM.
    """
    path = find_plugin(kind)
    plugin = open_library(path)
    register = getattr(plugin, f"wherry_{kind}_open")
    register.restype, register.argtypes = ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_char_p)
    programs = settings.cache_dir() / "programs" / kind
    if problem := register(version("apache-tvm").encode(), str(programs).encode()):
        raise ToolchainError(f"{path}: {problem.decode(errors='replace')}")
    return plugin


def _autoload(kind: str) -> None:
    """Register devices of a kind in a process that imports TVM.

    It does nothing if TVM supports them itself, or without a plugin. The entry points of the group
    "tvm.backends" call it. TVM turns an error into a warning.
    """
    import tvm_ffi  # imported already, because TVM calls this function

    own = tvm_ffi.get_global_func(f"device_api.{kind}", allow_missing=True) is not None
    try:
        find_plugin(kind)
    except ToolchainError:  # the plugin was not built, which is no error here
        return
    if not own:
        open_plugin(kind)


def autoload_opencl() -> None:
    """Register OpenCL devices when TVM is imported; an entry point of TVM calls it."""
    _autoload("opencl")


def autoload_vulkan() -> None:
    """Register Vulkan devices when TVM is imported; an entry point of TVM calls it."""
    _autoload("vulkan")

"""The Metal plugin on this machine: an Objective-C run time, and classes that answer as Metal's do.

GCC's run time finds the methods, tests/backends/metal has the classes, and clang and the emulator
of tests/targets/metal run the kernels. A process either has this or the device of `support.metal`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest

from . import command, metal

SOURCES = Path(__file__).parents[1] / "backends" / "metal"
ROOT = Path(__file__).parents[2]
LIBRARY = "WHERRY_FAKE_METAL_LIBRARY"


@cache
def library() -> Path:
    """The library of the run time and the classes; a skip without their compilers."""
    compiler = shutil.which("gcc")
    if compiler is None or not _has_objective_c(compiler):
        message = "no compiler of Objective-C; apt-get install gobjc"
        if os.environ.get(metal.REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    runtime = metal.folder() / "objective-c"
    runtime.mkdir()
    for source in (*SOURCES.glob("*.m"), SOURCES / "send.S"):
        flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-objc-root-class"]
        flags = flags if source.suffix == ".m" else []
        _run(
            compiler, *flags, "-O1", "-g", "-fPIC", "-c", source, "-o", runtime / f"{source.name}.o"
        )
    sources = [*SOURCES.glob("*.cc"), metal.HERE / "emulator.cc"]
    options = [f"-I{metal.HERE}", *metal.package_options(), *runtime.glob("*.o"), "-lobjc"]
    return metal.compiled(sources, runtime / "libfake_metal.so", "-O1", *options)


def _has_objective_c(compiler: str) -> bool:
    done = subprocess.run(
        [compiler, "-x", "objective-c", "-c", "-o", os.devnull, "-"], input=b"", capture_output=True
    )
    return done.returncode == 0


def _run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def environment() -> dict[str, str]:
    """What a process needs to run kernels."""
    kernels = metal.folder() / "fake-kernels"
    kernels.mkdir(exist_ok=True)
    flags = ["-std=c++20", "-shared", "-fPIC", *metal.KERNEL_FLAGS, f"-I{metal.HERE}", "-w"]
    return {
        LIBRARY: str(library()),
        "WHERRY_FAKE_METAL_COMPILER": " ".join([metal.clang(), *flags]),
        "WHERRY_FAKE_METAL_FOLDER": str(kernels),
    }


def python(script: str, *arguments: str, **env: str) -> str:
    """Run a script in a process of its own, which `opened` gives the plugin; what it printed."""
    path = {"PYTHONPATH": f"{command.SRC}:{ROOT}"}
    return command.python(script, *arguments, **{**environment(), **path, **env})


class Settings(ctypes.Structure):
    """FakeMetalSettings of tests/backends/metal/metal.h."""

    _fields_ = [
        ("max_buffer", ctypes.c_ulong),
        ("working_set", ctypes.c_ulong),
        ("family", ctypes.c_long),
        ("max_threads", ctypes.c_ulong),
        ("archives", ctypes.c_int),
        ("none", ctypes.c_int),
        ("version", ctypes.c_char_p),
        ("failure", ctypes.c_char_p),
        ("failure_code", ctypes.c_long),
    ]


class Fake:
    """The classes' record of what a program did."""

    def __init__(self, plugin: ctypes.CDLL) -> None:
        self._plugin = plugin
        self._plugin.wherry_metal_devices.restype = ctypes.c_char_p
        self._library = ctypes.CDLL(os.environ[LIBRARY])
        for name in ("broken", "events", "objects"):
            getattr(self._library, f"fake_metal_{name}").restype = ctypes.c_char_p
        self._library.fake_metal_settings.restype = ctypes.POINTER(Settings)
        self.settings: Settings = self._library.fake_metal_settings().contents

    def listed(self) -> bytes:
        """The plugin's devices, as JSON."""
        return self._plugin.wherry_metal_devices()

    def broken(self) -> list[str]:
        """The rules of Metal's that the program broke."""
        return self._library.fake_metal_broken().decode().splitlines()

    def events(self) -> dict[str, int]:
        """How often what happened: "commit", "dispatch", "compile"..."""
        return json.loads(self._library.fake_metal_events())

    def objects(self) -> dict[str, int]:
        """Objects that live, by class."""
        return json.loads(self._library.fake_metal_objects())


def opened(cache_folder: str = "") -> Fake:
    """Open the plugin in this process, which TVM's run time finds from then on."""
    from wherry.machine import plugins
    from wherry.runtime.core.library import open_runtime

    open_runtime("cpu")
    ctypes.CDLL(os.environ[LIBRARY], ctypes.RTLD_GLOBAL)
    plugin = ctypes.CDLL(str(plugins.find_plugin("metal")), ctypes.RTLD_GLOBAL)
    plugin.wherry_metal_open.restype = ctypes.c_char_p
    problem = plugin.wherry_metal_open(version("apache-tvm").encode(), cache_folder.encode())
    assert problem is None, problem
    return Fake(plugin)

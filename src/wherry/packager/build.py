"""Builds libraries for one platform with CMake: the engine, and the models linked to it.

The engine is compiled once for each version of its sources and each compiler, in the cache's folder
`native`; a package then only links.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from wherry.base import settings
from wherry.base.locks import making
from wherry.errors import ToolchainError

from . import drivers, httplib, sources, wuffs, xgrammar
from .compilers import Compiler, find_program
from .platforms import Platform

PROGRAM = "wherry-lite"  # name of the command-line program in app/lite
Progress = Callable[[str, int, int], None]
_STEP = re.compile(rb"^\[(\d+)/(\d+)\]")  # progress lines of ninja


def build(
    platform: Platform,
    compiler: Compiler,
    models: Path,
    out: Path,
    progress: Progress | None = None,
    *,
    grammar: bool = False,
    images: bool = False,
    devices: Sequence[str] = (),
) -> tuple[Path, ...]:
    """Build the libraries in `out`: lib/libwherry.a, and lib/libwherry.so if it can be linked.

    Platforms with a terminal also get bin/wherry-lite.

    Args:
        platform: the platform to build for.
        compiler: the platform's compiler, without missing requirements.
        models: folder of models.cc and the models' objects, see `linked.write_models`.
        out: the output folder.
        progress: called with the platform's name, steps done, and steps in total.
        grammar: whether xgrammar, which must be installed, is compiled in.
        images: whether wuffs, which must be installed, is compiled in.
        devices: kinds of devices whose plugins are compiled in; no requirement may be missing.

    Returns:
        The libraries and programs, stripped.

    Raises:
        ToolchainError: CMake or the compiler failed; the message ends with its output.
    """
    folder = _folder(platform, compiler, grammar=grammar, images=images)
    environment = {**os.environ, **compiler.environment}
    with making(folder, f"the core for {platform.name}"):
        _remove_older(folder, platform)
        cmake = find_program("cmake") or "cmake"
        configure = [cmake, "-S", str(sources.root() / "mobile" / "native"), "-B", str(folder)]
        configure += ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={find_program('ninja')}"]
        configure += [f"-D{name}={value}" for name, value in compiler.definitions.items()]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", f"-DWHERRY_MODELS={models}"]
        configure += [f"-DWHERRY_SHARED={'ON' if compiler.links else 'OFF'}"]
        configure += [f"-DWHERRY_NATIVE_TOOLS={'ON' if platform.programs else 'OFF'}"]
        configure += [f"-DWHERRY_HTTPLIB={httplib.requirement().installed or ''}"]
        configure += [
            f"-DWHERRY_XGRAMMAR={xgrammar.requirement().installed or '' if grammar else ''}"
        ]
        configure += [f"-DWHERRY_WUFFS={wuffs.requirement().installed or '' if images else ''}"]
        configure += [f"-D{name}={value}" for name, value in drivers.definitions(platform, devices)]
        _run(configure, environment, platform)
        _run([cmake, "--build", str(folder)], environment, platform, progress)
        _run(
            [cmake, "--install", str(folder), "--prefix", str(out), "--strip"],
            environment,
            platform,
        )
    return (*sorted((out / "lib").iterdir()), *sorted((out / "bin").glob(PROGRAM)))


def _folder(platform: Platform, compiler: Compiler, *, grammar: bool, images: bool) -> Path:
    parts: tuple[object, ...] = (
        sorted(compiler.definitions.items()),
        compiler.requirements,
        version("apache-tvm"),
    )
    parts += (xgrammar.VERSION,) if grammar else ()
    parts += (wuffs.VERSION,) if images else ()
    inputs = repr(parts)
    key = hashlib.sha256(inputs.encode()).hexdigest()[:8]
    return settings.cache_dir() / "native" / f"{platform.name}-{sources.digest()}-{key}"


def _remove_older(folder: Path, platform: Platform) -> None:
    """Remove builds of other versions of the engine's sources."""
    pattern = re.compile(re.escape(platform.name) + r"-[0-9a-f]{12}-[0-9a-f]{8}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if other != folder and pattern.fullmatch(other.name):
            shutil.rmtree(other, ignore_errors=True)


def _run(
    command: list[str],
    environment: dict[str, str],
    platform: Platform,
    progress: Progress | None = None,
) -> None:
    lines: list[bytes] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        assert process.stdout
        for line in process.stdout:
            lines.append(line)
            if progress and (step := _STEP.match(line)):
                progress(platform.name, int(step[1]), int(step[2]))
    if process.returncode:
        said = b"".join(lines[-40:]).decode(errors="replace")
        raise ToolchainError(
            f"The core could not be built for {platform.name}: {' '.join(command)} ended with "
            f"{process.returncode}:\n{said}"
        )

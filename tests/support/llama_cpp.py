"""llama.cpp as a reference: its sources, and its library where one is built.

Both are expensive, so a person can give them. `WHERRY_LLAMA_CPP` names a folder with llama.cpp's
sources; without it the source package of llama-cpp-python, which contains them, is downloaded.
`WHERRY_LLAMA_CPP_BUILD` names a folder in which CMake has built them:

    cmake -S $WHERRY_LLAMA_CPP -B $WHERRY_LLAMA_CPP_BUILD -DCMAKE_BUILD_TYPE=Release \\
      -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF \\
      -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF
    cmake --build $WHERRY_LLAMA_CPP_BUILD --target llama
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

PACKAGE = "llama-cpp-python==0.3.36"
SOURCES, BUILD = "WHERRY_LLAMA_CPP", "WHERRY_LLAMA_CPP_BUILD"
REQUIRED = "WHERRY_REQUIRE_LLAMA_CPP"  # a machine that sets it has a build


def sources(folder: Path) -> Path:
    """llama.cpp's folder; downloaded to `folder` if none is given."""
    if given := os.environ.get(SOURCES):
        return Path(given)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", "llama-cpp-python", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        packed.extractall(folder)
    return next(folder.glob("*/vendor/llama.cpp"))


def driver(folder: Path) -> list[str]:
    """Build `llama_greedy.cc` with llama.cpp's library; return the command to run it."""
    given = os.environ.get(BUILD)
    if given is None or SOURCES not in os.environ:
        why = f"set {SOURCES} and {BUILD} to llama.cpp's sources and build: see {__file__}"
        assert REQUIRED not in os.environ, why
        pytest.skip(why)
    home, libraries = Path(os.environ[SOURCES]), Path(given).resolve() / "bin"
    program = folder / "llama_greedy"
    command = ["c++", "-std=c++17", "-O1", str(Path(__file__).with_name("llama_greedy.cc"))]
    command += [f"-I{home / 'include'}", f"-I{home / 'ggml/include'}", "-o", str(program)]
    command += [f"-L{libraries}", "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{libraries}"]
    subprocess.run(command, check=True)
    return [str(program)]

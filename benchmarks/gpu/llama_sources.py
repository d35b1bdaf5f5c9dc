"""Copies the part of llama.cpp's sources that its benchmarks need on NVIDIA's GPUs.

The sources come from llama-cpp-python's source package and are compiled on the GPU machine
(`llama.py`). This repository contains none of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

VERSION = "0.3.36"  # version of llama-cpp-python, the same as in the CPU benchmarks
# Folders of llama.cpp to copy; those for other devices and for network features are left out.
FOLDERS = ("cmake", "common", "ggml", "gguf-py", "include", "src", "vendor")
TOOLS = ("batched-bench", "llama-bench")
DEVICES = ("ggml-cpu", "ggml-cuda")
FILES = ("CMakeLists.txt", "LICENSE")
# End of a folder's path -> rule (folder, file name) for files to leave out: other devices and
# processors, and headers for images and sound.
LEFT_OUT: dict[str, Callable[[str, str], bool]] = {
    "ggml/src": lambda folder, name: Path(folder, name).is_dir() and name not in DEVICES,
    "ggml-cpu": lambda _, name: name == "spacemit",
    "ggml-cpu/arch": lambda _, name: name != "x86",
    "vendor/miniaudio": lambda _, name: name.endswith(".h"),
    "vendor/stb": lambda _, name: name.endswith(".h"),
}


def write(out: Path) -> None:
    """Write the needed sources to the folder `out`."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", place]
        package = f"llama-cpp-python=={VERSION}"
        subprocess.run([*command, "--no-binary", "llama-cpp-python", package], check=True)
        (packed,) = Path(place).glob("*.tar.gz")
        with tarfile.open(packed) as archive:
            archive.extractall(place, filter="data")
        (sources,) = Path(place).glob("*/vendor/llama.cpp")
        copy(sources, out)


def copy(sources: Path, out: Path) -> None:
    """Copy the needed files of a checkout of llama.cpp."""
    out.mkdir(parents=True)
    for name in FILES:
        shutil.copy(sources / name, out)
    for name in FOLDERS:
        shutil.copytree(sources / name, out / name, ignore=_left_out)
    for name in TOOLS:
        shutil.copytree(sources / "tools" / name, out / "tools" / name)
    lines = [f"add_subdirectory({name})\n" for name in TOOLS]
    (out / "tools" / "CMakeLists.txt").write_text("".join(lines))


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Return the files of a folder that are not copied."""
    rules = [rule for end, rule in LEFT_OUT.items() if folder.endswith(end)]
    return [name for name in names if any(rule(folder, name) for rule in rules)]

"""llama.cpp's sources, as little of them as its own benchmarks take on NVIDIA's GPUs, for a bundle.

They come out of the source package of llama-cpp-python, and are compiled where the GPU is
(`llama.py`). Nothing of them is kept in this repository.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "0.3.36"  # of llama-cpp-python, as for the CPU's benchmarks
# Without the devices that nobody asks for, and without what needs the network's libraries to build.
FOLDERS = ("cmake", "common", "ggml", "gguf-py", "include", "src", "vendor")
TOOLS = ("batched-bench", "llama-bench")
DEVICES = ("ggml-cpu", "ggml-cuda")
FILES = ("CMakeLists.txt", "LICENSE")


def write(out: Path) -> None:
    """Fill the folder `out`."""
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
    """What is built of a checkout of llama.cpp."""
    out.mkdir(parents=True)
    for name in FILES:
        shutil.copy(sources / name, out)
    for name in FOLDERS:
        shutil.copytree(sources / name, out / name, ignore=_other_devices)
    for name in TOOLS:
        shutil.copytree(sources / "tools" / name, out / "tools" / name)
    lines = [f"add_subdirectory({name})\n" for name in TOOLS]
    (out / "tools" / "CMakeLists.txt").write_text("".join(lines))


def _other_devices(folder: str, names: list[str]) -> list[str]:
    """What stays behind."""
    if not folder.endswith("ggml/src"):
        return []
    return [n for n in names if Path(folder, n).is_dir() and n not in DEVICES]

"""Finds GCC's C++ library for a machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Libstdcxx:
    """GCC's C++ library for a machine.

    Attributes:
        version: GCC's.
        headers: folders, in the order in which they are searched.
        static: libstdc++.a.
        shared: libstdc++.so.6.
        unwinder: libgcc_s.so.1.
    """

    version: str
    headers: list[Path]
    static: Path
    shared: Path
    unwinder: Path


def find_libstdcxx(architecture: str) -> Libstdcxx:
    """Ask the GCC for an architecture for its C++ library."""
    package = f"g++-{architecture.replace('_', '-')}-linux-gnu"  # Debian's
    compiler = f"{architecture}-linux-gnu-g++"
    if shutil.which(compiler) is None:
        raise SystemExit(
            f"{compiler} was not found: a wheel for {architecture} needs GCC's C++ library "
            f"for it. Type: apt-get install {package}"
        )

    def ask(*arguments: str) -> str:
        done = subprocess.run(
            [compiler, *arguments], check=True, capture_output=True, text=True, input=""
        )
        return done.stdout.strip() or done.stderr

    def find(name: str) -> Path:
        path = Path(ask(f"-print-file-name={name}")).resolve()
        if not path.is_absolute() or not path.is_file():
            raise SystemExit(f"{compiler} has no {name}. Type: apt-get install {package}")
        return path

    searched = ask("-E", "-x", "c++", "-v", "-o", "/dev/null", "-")
    folders = re.findall(r"^ (/\S+/c\+\+/\S+)$", searched, re.MULTILINE)
    return Libstdcxx(
        version=ask("-dumpfullversion"),
        headers=[Path(folder).resolve() for folder in folders],
        static=find("libstdc++.a"),
        shared=find("libstdc++.so"),
        unwinder=find("libgcc_s.so.1"),
    )

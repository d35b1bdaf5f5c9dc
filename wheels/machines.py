"""The machines that wheels are built for, and what their C++ is compiled with."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

GLIBC = "2.28"  # of manylinux_2_28: RHEL 8, Debian 10, Ubuntu 18.10 and later


@dataclass(frozen=True)
class Machine:
    """architecture: as Python's wheels and GNU's triples name it."""

    architecture: str

    @property
    def platform(self) -> str:
        """The wheel's tag."""
        return f"manylinux_{GLIBC.replace('.', '_')}_{self.architecture}"

    @property
    def target(self) -> str:
        """Zig's name of the machine and its C library."""
        return f"{self.architecture}-linux-gnu.{GLIBC}"

    @property
    def package(self) -> str:
        """Debian's package that has GCC's C++ library for it."""
        return f"g++-{self.architecture.replace('_', '-')}-linux-gnu"


MACHINES = {name: Machine(name) for name in ("x86_64", "aarch64")}


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


def find_libstdcxx(machine: Machine) -> Libstdcxx:
    """Ask the machine's GCC for its C++ library."""
    compiler = f"{machine.architecture}-linux-gnu-g++"
    if shutil.which(compiler) is None:
        raise SystemExit(
            f"{compiler} was not found: a wheel for {machine.architecture} needs GCC's C++ library "
            f"for it. Type: apt-get install {machine.package}"
        )

    def ask(*arguments: str) -> str:
        done = subprocess.run(
            [compiler, *arguments], check=True, capture_output=True, text=True, input=""
        )
        return done.stdout.strip() or done.stderr

    def find(name: str) -> Path:
        path = Path(ask(f"-print-file-name={name}")).resolve()
        if not path.is_absolute() or not path.is_file():
            raise SystemExit(f"{compiler} has no {name}. Type: apt-get install {machine.package}")
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

"""What every wheel is built of: this checkout, Zig and TVM's packages."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .machines import Machine, here

ROOT = Path(__file__).resolve().parent.parent
PIP = (sys.executable, "-m", "pip")


@dataclass(frozen=True)
class Part:
    """Code of others that is compiled into the libraries of a wheel.

    Attributes:
        name: of the package.
        version: its version; None: unknown.
        licence: an expression of SPDX.
        about: which part of it, and where.
    """

    name: str
    version: str | None
    licence: str
    about: str


@dataclass(frozen=True)
class Prepared:
    """What a system's folder adds to a build: settings of CMake, and parts for the bill."""

    settings: dict[str, Any]
    parts: list[Part]


def zig() -> Path:
    """Return the program zig."""
    import ziglang

    return Path(ziglang.__file__).parent / "zig"


def site_packages() -> Path:
    """Return the folder that TVM's headers are in."""
    import tvm_ffi

    return Path(tvm_ffi.__file__).parent.parent


def build_requirements() -> list[str]:
    """Return what pyproject.toml's build-system asks for."""
    line = next(
        line
        for line in (ROOT / "pyproject.toml").read_text().splitlines()
        if line.startswith("requires = ")
    )
    return [part for part in line.split('"')[1::2]]


def tvm_libraries(machine: Machine, file: str, out: Path) -> dict[str, str]:
    """Return CMake's settings for TVM's libraries of a machine that is not this one.

    Args:
        machine: the other one.
        file: what a library's file is called there, of what is linked to: "lib{}.so".
        out: a folder for its packages, and for the libraries: `tvm/lib` and `tvm_ffi/lib`.
    """
    if machine == here():
        return {}
    pins = [pin for pin in build_requirements() if pin.startswith("apache-tvm")]
    wheels = ["--only-binary=:all:", "--platform", machine.platform, *pins]
    subprocess.run([*PIP, "download", "--quiet", "--no-deps", "--dest", out, *wheels], check=True)
    for wheel in out.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                stem = Path(name).stem.removeprefix("lib")
                if Path(name).parts[1:2] == ("lib",) and stem in _LIBRARIES:
                    archive.extract(name, out)
    return {
        "WHERRY_TVM_FFI_LIBRARY": str(out / "tvm_ffi/lib" / file.format("tvm_ffi")),
        "WHERRY_TVM_RUNTIME": str(out / "tvm/lib" / file.format("tvm_runtime")),
    }


_LIBRARIES = ("tvm_ffi", "tvm_runtime", "tvm_runtime_metal")

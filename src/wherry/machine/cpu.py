"""Checks which compiled libraries the CPU of this machine can run.

This module imports neither TVM nor NumPy.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

# Part of LLVM's triple -> sys.platform; the first match counts.
_SYSTEMS = {
    "linux-android": "android",
    "linux": "linux",
    "apple-ios": "ios",
    "apple-macos": "darwin",
    "pc-windows": "win32",
}

AMX = frozenset({"amx_bf16", "amx_tile"})  # matrix units that compiled libraries may need
_ARCH_PRCTL = 158  # the system call's number on x86-64


def machine_problems(target: Mapping[str, Any]) -> list[str]:
    """Return what this machine lacks for a library of `target`; [] if it can run the library."""
    triple = str(target.get("host", ""))
    arch = triple.partition("-")[0].replace("arm64", "aarch64")
    here = platform.machine().replace("AMD64", "x86_64").replace("arm64", "aarch64")
    system = next((s for word, s in _SYSTEMS.items() if f"-{word}" in triple), sys.platform)
    if (arch and arch != here) or system != sys.platform:
        return [f"it was compiled for {triple}, this machine is {here} with {sys.platform}"]
    problems: list[str] = []
    if "symbols" in target.get("objects", {}):
        problems.append("its library is an archive of objects, which wait for a program's linker")
    if str(target.get("kind", "")) != "llvm":
        return problems  # a GPU's limits are checked when the device is opened
    missing = sorted(set(target.get("features", ())) - cpu_features())
    if missing and cpu_features():
        problems.append(
            f"it needs the CPU features {', '.join(missing)} of {target.get('cpu')}, "
            "which this machine lacks"
        )
    return problems


def cpu_features() -> frozenset[str]:
    """Return the CPU features that this process may use, in Linux's names ("avx512_vnni").

    They are empty if they cannot be read. Linux lets a process use AMX that asks for it, which the
    first call does.
    """
    flags = cpu_flags()
    return flags - AMX if flags & AMX and not _allows_amx() else flags


def cpu_flags() -> frozenset[str]:
    """Return all CPU features that the system names; empty if they cannot be read."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return frozenset()
    for line in info.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@cache
def _allows_amx() -> bool:
    """Ask for the tiles of AMX, as engine/support/matrix_units.h does; return whether it worked."""
    request, tile_data = 0x1023, 18  # ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    system = ctypes.CDLL(None)
    return bool(system.syscall(_ARCH_PRCTL, request, tile_data) == 0)

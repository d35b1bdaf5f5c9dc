"""Checks the libraries of a Windows wheel from their files: CPU, and what they are linked to."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import lief

# Of Windows itself, 10 and later; the C library is in the second kind, by subject.
WINDOWS = ("kernel32.dll", "advapi32.dll", "bcrypt.dll", "ntdll.dll")
UCRT = "api-ms-win-crt-"
# The libraries of packages that a wheel depends on, which are installed next to wherry/. Before
# ours are opened, wherry.machine.plugins adds that folder to those that Windows searches.
OTHERS = {"tvm_ffi.dll": "tvm_ffi/lib"}


@cache  # lief frees what nothing holds, also while parts of it are in use
def open_library(path: Path) -> Any:
    """Return lief's reading of a library.

    Raises:
        SystemExit: the file is no such library.
    """
    library = lief.PE.parse(str(path))
    if library is None:
        raise SystemExit(f"{path} is no library of Windows")
    return library


def exports(path: Path) -> set[str]:
    """Return the symbols that a library has for others."""
    return {str(entry.name) for entry in open_library(path).get_export().entries}


def problems(path: Path, packages: Path) -> list[str]:
    """Return what keeps a library of the wheel from being loaded.

    Args:
        path: a library that was unpacked of the wheel.
        packages: a folder with the libraries of TVM's packages.
    """
    library = open_library(path)
    wrong = []
    if library.header.machine != lief.PE.Header.MACHINE_TYPES.AMD64:
        wrong.append(f"it is for {library.header.machine.name}, not for AMD64")
    for one in library.imports:
        name = str(one.name).lower()
        if name in OTHERS:
            missing = {str(entry.name) for entry in one.entries} - exports(
                packages / OTHERS[name] / name
            )
            wrong += [f"{name} has no {symbol}" for symbol in sorted(missing)]
        elif name not in WINDOWS and not name.startswith(UCRT):
            wrong.append(f"it needs {name}, which nothing brings")
    return wrong

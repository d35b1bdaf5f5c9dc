"""Checks the libraries of a macOS wheel, which cannot be loaded here.

What dyld would do is checked from the files: each library is for the system and the CPU of the
tag, it finds the libraries that it needs by its own path, and each of these has the symbols that
are taken from it. Of the system's two, libSystem's symbols are checked by the linker, out of
Apple's list, and libc++'s by its headers (link.py).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import lief

from ..machines import MACOS
from .link import LIBCXX, is_libcxx

LIBSYSTEM = "/usr/lib/libSystem.B.dylib"
# The libraries of packages that a wheel depends on, which are installed next to wherry/.
OTHERS = {"@rpath/libtvm_ffi.dylib": "tvm_ffi/lib"}


@cache  # lief frees what nothing holds, also while parts of it are in use
def _parse(path: Path) -> Any:
    lief.logging.disable()  # it reports a table that is not there
    return lief.MachO.parse(str(path))


def open_library(path: Path) -> Any:
    """Return lief's reading of a library of one architecture.

    Raises:
        SystemExit: the file is no such library.
    """
    fat = _parse(path)
    if fat is None or fat.size != 1:
        raise SystemExit(f"{path} is no library of macOS for one architecture")
    return fat.at(0)


def exports(path: Path) -> set[str]:
    """Return the symbols that a library has for others."""
    return {str(symbol.name) for symbol in open_library(path).exported_symbols}


def problems(path: Path, packages: Path) -> list[str]:
    """Return what keeps a library of the wheel from being loaded.

    Args:
        path: a library, in a folder that the wheel was unpacked in: wherry/libwherry.dylib.
        packages: a folder with the libraries of TVM's packages.
    """
    library = open_library(path)
    wrong = []
    version = library.build_version
    system = f"{version.platform.name} {'.'.join(map(str, version.minos[:2]))}"
    if system != f"MACOS {MACOS}":
        wrong.append(f"it is for {system}, not for MACOS {MACOS}")
    if not library.has_code_signature:
        wrong.append("it has no signature, which Apple silicon asks of every library")
    ids = [str(it.name) for it in library.commands if it.command.name == "ID_DYLIB"]
    if ids != [f"@rpath/{path.name}"]:
        wrong.append(f"its own name is {ids}")
    loaded = {str(one.name) for one in library.libraries} - set(ids)
    if unknown := loaded - {LIBSYSTEM, LIBCXX} - OTHERS.keys():
        wrong.append(f"it needs {sorted(unknown)}, which nothing brings")
    rpaths = [str(one.path) for one in library.rpaths]
    for name in loaded & OTHERS.keys():
        if f"@loader_path/../{OTHERS[name]}" not in rpaths:
            wrong.append(f"{name} is not in {rpaths}")
    return wrong + _missing(library, packages)


def _missing(library: Any, packages: Path) -> list[str]:
    """Return the symbols that no library has from which they are taken."""
    wrong = []
    has = {name: exports(packages / folder / Path(name).name) for name, folder in OTHERS.items()}
    names = [str(one.name) for one in library.libraries if one.command.name != "ID_DYLIB"]
    for symbol in library.imported_symbols:
        name, ordinal = str(symbol.name), symbol.library_ordinal
        if not 1 <= ordinal <= len(names):
            wrong.append(f"{name} is taken from whatever library is there ({ordinal})")
            continue
        source = names[ordinal - 1]
        if source == LIBCXX and not is_libcxx(name):
            wrong.append(f"{name} is not of {LIBCXX}")
        if source in has and name not in has[source]:
            wrong.append(f"{source} has no {name}")
    return wrong

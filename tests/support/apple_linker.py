"""Links a program for iOS on this machine, with LLVM's linker and lists of the system's symbols."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from wherry.packager import check, object_files
from wherry.packager.compilers import zig_folder

from .metal import REQUIRED

_LINKERS = ("ld64.lld", *(f"ld64.lld-{v}" for v in range(25, 13, -1)))
_SYSTEM = "usr/lib/libSystem.B.dylib"
_FRAMEWORK = "System/Library/Frameworks/{0}.framework/{0}"


def linked(library: Path, main: Path, out: Path) -> frozenset[str]:
    """Link an object file and a static library to a program; the symbols that it imports.

    Each of the system's libraries has the symbols that `wherry.packager.check` knows of it, so
    that any other symbol fails the link.
    """
    linker = next(filter(None, map(shutil.which, _LINKERS)), None)
    if linker is None:
        message = "no linker of Mach-O; apt-get install lld"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    zig = zig_folder()
    assert zig, "the package ziglang has the list of libSystem's symbols"
    needed = object_files.undefined(object_files.read(library))
    cpp = {name for name in needed if check.in_cpp_library(name)} | (needed & check._ALSO)
    system = check._system(zig / "lib" / "libc" / "darwin" / "libSystem.tbd")
    stubs = out.parent / "stubs"
    words = [
        _stub(stubs / "libSystem.tbd", _SYSTEM, {f"_{name}" for name in needed & system}),
        _stub(stubs / "libc++.tbd", "usr/lib/libc++.1.dylib", {f"_{name}" for name in cpp}),
        _stub(stubs / "libobjc.tbd", "usr/lib/libobjc.A.dylib", _named("objc", "sel")),
        _stub(stubs / "Metal.tbd", _FRAMEWORK.format("Metal"), _named("MTL")),
    ]
    command = [linker, "-arch", "arm64", "-platform_version", "ios", "16.0", "16.0", "-dead_strip"]
    done = subprocess.run(
        [*map(str, (*command, main, library, *words)), "-o", str(out)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (program,) = object_files.read(out)
    return program.undefined


def _named(*prefixes: str) -> set[str]:
    return {f"_{name}" for name in check.METAL if name.startswith(prefixes)}


def _stub(path: Path, install_name: str, symbols: Collection[str]) -> Path:
    """Write a text-based stub library: what a linker reads in place of a system's library."""
    path.parent.mkdir(exist_ok=True)
    # The linker itself asks for the binder of stubs.
    binder = {"dyld_stub_binder"} if install_name == _SYSTEM else set()
    listed = ", ".join(f"'{name}'" for name in sorted({*symbols, *binder}))
    path.write_text(
        "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-ios ]\n"
        f"install-name: '/{install_name}'\nexports:\n"
        f"  - targets: [ arm64-ios ]\n    symbols: [ {listed} ]\n...\n"
    )
    return path

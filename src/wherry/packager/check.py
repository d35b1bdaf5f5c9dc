"""Checks that a library fits its platform, and needs only symbols that the system has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from wherry.errors import ToolchainError, listing

from . import object_files
from .compilers import zig_folder
from .object_files import ObjectFile
from .platforms import Platform

# Functions that models call: in TVM's runtime (mobile/native/runtime.cc has them) and in the C
# library, which LLVM calls, too.
RUNTIME = frozenset(
    {
        "TVMBackendAllocWorkspace",
        "TVMBackendFreeWorkspace",
        "TVMBackendParallelLaunch",
        "TVMFFIEnvModLookupFromImports",
        "TVMFFIEnvModRegisterSystemLibSymbol",
        "TVMFFIErrorSetRaisedFromCStr",
        "TVMFFIErrorSetRaisedFromCStrParts",
        "TVMFFIFunctionCall",
        "TVMFFIHandleInitOnce",
    }
)
_MATH = "ceil cos erf exp exp2 fabs floor fma fmax fmin fmod log log2 nearbyint pow rint round sin "
_MATH += "sincos sqrt tan tanh trunc"
LIBC = frozenset(
    {"memcpy", "memmove", "memset", "memcmp", "bzero", "memset_pattern16"}
    | {name + suffix for name in _MATH.split() for suffix in ("", "f")}
)
# Symbols of Objective-C and of Metal that the plugin for Metal calls. Apple has them since
# iOS 8; zig has no lists of them.
METAL = frozenset(
    {"objc_msgSend", "objc_getClass", "sel_registerName", "MTLCreateSystemDefaultDevice"}
)
# Symbols of the C++ standard library, mangled: std::, exceptions, allocation, and the type
# information of built-in types (char32_t is Di) and of pointers to them.
_BUILTIN = r"T[IS](PK?)?([vbwcahstijlmxynofdeg]|D[inusdef])$"
_CPP = re.compile(
    r"_Z(N[KVO]*St|St|T[ISTV]N?St|T[ISTV]S|N10__cxxabiv1|TVN10__cxxabiv1|d[la]|n[wa]"
    rf"|{_BUILTIN})|__cxa_"
)
_ALSO = frozenset({"__gxx_personality_v0", "_Unwind_Resume", "__dso_handle", "__stack_chk_fail"})


def check_objects(platform: Platform, files: Sequence[Path]) -> None:
    """Check models' objects before they are linked.

    Raises:
        ToolchainError: lists all problems.
    """
    objects = [file for path in files for file in object_files.read(path)]
    missing = object_files.undefined(objects) - RUNTIME - LIBC
    _raise(platform, [*_foreign(platform, objects), *_needed(missing)])


def check_library(platform: Platform, library: Path) -> None:
    """Check a static library of the core and models for an Apple system.

    It does a linker's work with the lists of the system's symbols that zig has. On other systems
    linking the shared library checks this.

    Raises:
        ToolchainError: lists all problems.
    """
    objects = object_files.read(library)
    zig = zig_folder()
    missing: Iterable[str] = ()
    if platform.system == "apple" and zig:
        system = _system(zig / "lib" / "libc" / "darwin" / "libSystem.tbd")
        missing = object_files.undefined(objects) - system - METAL - _ALSO
        missing = [name for name in missing if not in_cpp_library(name)]
    _raise(platform, [*_foreign(platform, objects), *_needed(missing)])


def in_cpp_library(name: str) -> bool:
    """Return whether libc++ or libc++abi defines a mangled symbol (Itanium C++ ABI)."""
    return bool(_CPP.match(name))


def _system(path: Path) -> frozenset[str]:
    """Read the symbols of Apple's C library from a text-based stub library with bracketed lists."""
    return frozenset(re.findall(r"(?<![\w$])_([\w$]+)", path.read_text(encoding="utf-8")))


def _foreign(platform: Platform, files: Iterable[ObjectFile]) -> list[str]:
    expected = (platform.format, platform.arch, platform.platform)
    return [
        f"{file.name} is {file.format} for {file.arch} {file.platform}".rstrip()
        for file in files
        if (file.format, file.arch, file.platform) != expected
    ]


def _needed(names: Iterable[str]) -> list[str]:
    return [f"{name} is called, and nowhere defined" for name in sorted(names)]


def _raise(platform: Platform, problems: list[str]) -> None:
    if problems:
        raise ToolchainError(
            f"What was built for {platform.name} cannot be linked there:\n{listing(problems)}"
        )

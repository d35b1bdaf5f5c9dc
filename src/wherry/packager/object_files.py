"""Reads the symbols of object files and static libraries: 64-bit little-endian ELF and Mach-O.

Sources: System V ABI (ELF-64), Apple's <mach-o/loader.h> and <mach-o/nlist.h>, ar(5).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wherry.errors import ToolchainError

_MACHINES = {62: "x86_64", 183: "aarch64"}  # ELF's e_machine
_CPUS = {0x01000007: "x86_64", 0x0100000C: "aarch64"}  # Mach-O's cputype
# platform numbers of Mach-O's LC_BUILD_VERSION
_PLATFORMS = {1: "macos", 2: "ios", 6: "macabi", 7: "ios-simulator"}
_ARCHIVE, _HEADER = b"!<arch>\n", 60  # archive: magic, bytes of a member's header
_INDEXES = ("/", "//", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFile:
    """Symbols of an object file, with their C names, without Mach-O's leading underscore."""

    name: str
    format: str  # object format: "ELF" or "Mach-O"
    arch: str  # CPU architecture: "aarch64", "x86_64"
    platform: str  # Mach-O platform and its oldest version: "ios 16.0"; "" for ELF
    defined: frozenset[str]  # symbols that are visible to other files
    undefined: frozenset[str]


def read(path: Path) -> list[ObjectFile]:
    """Read the object files of a static library, or a single object file.

    Raises:
        ToolchainError: the file is neither, or damaged.
    """
    data = path.read_bytes()
    members = _members(data) if data[:8] == _ARCHIVE else [(path.name, data)]
    try:
        return [_parse(name, content) for name, content in members]
    except (struct.error, IndexError, ValueError, KeyError) as e:
        raise ToolchainError(
            f"{path} is not a library of ELF or Mach-O objects of 64 bits: {e}."
        ) from e


def undefined(files: Iterable[ObjectFile]) -> frozenset[str]:
    """Return the symbols that these files together need from other libraries."""
    files = list(files)
    referenced = frozenset[str]().union(*(file.undefined for file in files))
    return referenced.difference(*(file.defined for file in files))


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of an archive's members, with GNU's or BSD's long names."""
    at, long_names = len(_ARCHIVE), b""
    while at + _HEADER <= len(data):
        header = data[at : at + _HEADER]
        size = int(header[48:58])
        name = header[:16].decode().rstrip()
        content = data[at + _HEADER : at + _HEADER + size]
        at += _HEADER + size + size % 2
        if name.startswith("#1/"):  # BSD: the name precedes the content
            length = int(name[3:])
            name, content = content[:length].rstrip(b"\0").decode(), content[length:]
        if name == "//":
            long_names = content
        elif name not in _INDEXES:
            if name.startswith("/"):  # GNU: an offset in the list of long names
                name = long_names[int(name[1:]) :].split(b"\n")[0].decode()
            yield name.rstrip("/"), content


def _parse(name: str, data: bytes) -> ObjectFile:
    if data[:4] == b"\x7fELF":
        return _elf(name, data)
    if data[:4] == b"\xcf\xfa\xed\xfe":
        return _macho(name, data)
    raise ValueError(f"{name} begins with {data[:4].hex()}")


def _text(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _elf(name: str, data: bytes) -> ObjectFile:
    if data[4:6] != b"\x02\x01":
        raise ValueError(f"{name} is not ELF of 64 bits, little-endian")
    (machine,) = struct.unpack_from("<H", data, 18)
    (sections_at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * size) for i in range(count)
    ]
    defined, undefined_ = set[str](), set[str]()
    for _, kind, _, _, offset, bytes_, link, *_ in sections:
        if kind != 2:  # not SHT_SYMTAB, a symbol table
            continue
        names = data[sections[link][4] : sections[link][4] + sections[link][5]]
        for at in range(offset, offset + bytes_, 24):
            text, info, _, section = struct.unpack_from("<IBBH", data, at)
            if info >> 4 == 0 or not text:  # STB_LOCAL, a local symbol
                continue
            is_weak = info >> 4 == 2
            if section:
                defined.add(_text(names, text))
            elif not is_weak:  # only a weak symbol may stay undefined
                undefined_.add(_text(names, text))
    return ObjectFile(
        name=name,
        format="ELF",
        arch=_MACHINES[machine],
        platform="",
        defined=frozenset(defined),
        undefined=frozenset(undefined_),
    )


def _macho(name: str, data: bytes) -> ObjectFile:
    cpu, _, _, commands = struct.unpack_from("<4I", data, 4)
    defined, undefined_ = set[str](), set[str]()
    platform, at = "", 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        if command == 0x32:  # LC_BUILD_VERSION, the platform
            kind, version = struct.unpack_from("<2I", data, at + 8)
            platform = f"{_PLATFORMS[kind]} {version >> 16}.{version >> 8 & 255}"
        if command == 0x02:  # LC_SYMTAB, the symbol table
            symbols, count, texts, length = struct.unpack_from("<4I", data, at + 8)
            names = data[texts : texts + length]
            for i in range(count):
                text, kind, _, description = struct.unpack_from("<IBBH", data, symbols + 16 * i)
                # N_STAB is for debuggers; without N_EXT a symbol is local
                if kind & 0xE0 or not kind & 0x01:
                    continue
                said = _text(names, text).removeprefix("_")
                if kind & 0x0E:  # a non-zero N_TYPE: the symbol is defined
                    defined.add(said)
                elif not description & 0x40:  # only an N_WEAK_REF may stay undefined
                    undefined_.add(said)
        at += size
    return ObjectFile(
        name=name,
        format="Mach-O",
        arch=_CPUS[cpu],
        platform=platform,
        defined=frozenset(defined),
        undefined=frozenset(undefined_),
    )

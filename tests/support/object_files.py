"""What object files say of themselves: format, CPU, platform."""

from __future__ import annotations

import struct
import tarfile
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of ELF
# Of LC_BUILD_VERSION.
PLATFORMS = {1: "macos", 2: "ios", 6: "macabi", 7: "ios-simulator"}


@dataclass(frozen=True)
class ObjectFile:
    """One of an archive."""

    name: str
    format: str
    arch: str
    platform: str  # Mach-O's, with the least version: "ios 16.0"
    data: bytes


def of(path: Path) -> list[ObjectFile]:
    """The object files of a tar archive; an assertion fails if one is of no known kind."""
    with tarfile.open(path) as archive:
        files = {m.name: archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
        return [_parse(name, file.read()) for name, file in sorted(files.items()) if file]


def _parse(name: str, data: bytes) -> ObjectFile:
    if data[:4] == b"\x7fELF":
        (kind, machine) = struct.unpack_from("<HH", data, 16)
        assert kind == 1, "ET_REL"
        return ObjectFile(name, "ELF", MACHINES[machine], "", data)
    if data[:4] == b"\0asm":
        return ObjectFile(name, "wasm", "wasm32", "", data)
    (magic,) = struct.unpack_from("<I", data)
    if magic == 0xFEEDFACF:
        return ObjectFile(name, "Mach-O", *_macho(data), data)
    (machine, sections) = struct.unpack_from("<HH", data)
    assert machine == 0x8664 and sections > 0, f"{name} begins with {data[:8].hex()}"
    return ObjectFile(name, "COFF", "x86_64", "", data)


def _macho(data: bytes) -> tuple[str, str]:
    """CPU and platform of a 64-bit Mach-O."""
    cpu, _, kind, commands = struct.unpack_from("<4I", data, 4)
    assert (cpu, kind) == (0x0100000C, 1), "CPU_TYPE_ARM64, MH_OBJECT"
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        if command == 0x32:  # LC_BUILD_VERSION
            platform, version = struct.unpack_from("<2I", data, at + 8)
            return "aarch64", f"{PLATFORMS[platform]} {version >> 16}.{version >> 8 & 255}"
        at += size
    return "aarch64", "none"

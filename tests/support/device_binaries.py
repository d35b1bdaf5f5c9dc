"""Reading machine code of GPUs in tests: fatbins of NVIDIA's, ELF files, what a library packs."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from pathlib import Path

from wherry.targets.toolchains.device_code import BLOB, DeviceCode, device_code

FATBIN = 0xBA55ED50
PTX, CUBIN = 1, 2  # kinds of a fatbin's entries
EM_CUDA, EM_AMDGPU = 190, 224
SHT_SYMTAB, SHT_DYNSYM = 2, 11


def packed(library: Path, kind: str) -> list[DeviceCode]:
    """The device modules of a kind in a compiled library."""
    blob = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(str(library)), BLOB))
    (size,) = struct.unpack("<Q", ctypes.string_at(blob, 8))
    return device_code(ctypes.string_at(blob, 8 + size), kind)


def fatbin_entries(data: bytes) -> list[tuple[int, str, bytes]]:
    """(PTX or CUBIN, "sm_90", content) of each entry; PTX is compressed."""
    magic, _, header, size = struct.unpack_from("<IHHQ", data)
    assert (magic, header + size) == (FATBIN, len(data))
    entries, at = [], header
    while at < len(data):
        kind, _, head, length = struct.unpack_from("<HHIQ", data, at)
        (code,) = struct.unpack_from("<I", data, at + 28)
        entries.append((kind, f"sm_{code}", data[at + head : at + head + length]))
        at += head + length
    return entries


@dataclass
class Elf:
    """What is asked about a 64-bit ELF file."""

    machine: int
    flags: int
    abi_version: int
    symbols: set[str]  # that are defined

    @staticmethod
    def read(data: bytes) -> Elf:
        assert data[:5] == b"\x7fELF\x02", data[:8]
        (machine,) = struct.unpack_from("<H", data, 18)
        (table,) = struct.unpack_from("<Q", data, 40)
        flags, _, _, _, size, count = struct.unpack_from("<IHHHHH", data, 48)
        # (name, type, flags, address, offset, size, link, ...) of each section
        sections = [struct.unpack_from("<IIQQQQI", data, table + i * size) for i in range(count)]
        symbols = set()
        for _, kind, _, _, offset, length, link in sections:
            if kind in (SHT_SYMTAB, SHT_DYNSYM):
                names = sections[link][4]
                for at in range(offset, offset + length, 24):
                    name, _, _, section = struct.unpack_from("<IBBH", data, at)
                    if section:
                        start = names + name
                        symbols.add(data[start : data.index(b"\0", start)].decode())
        return Elf(machine, flags, data[8], symbols)

"""Finds and replaces device code in a packed library.

TVM packs the imported modules of a library into bytes at the symbol BLOB:

    u64 bytes that follow; u64[] and u64[], the import tree
    for each module: its kind, as text; its own bytes, unless the kind is "_lib"

The bytes of a device module are its format ("cuda", "hsaco"), its kernels' signatures, and the
code. A text is u64 length and bytes; an array u64 length and elements. All is little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import tvm_ffi

BLOB = "__tvm_ffi__library_bin"
# TVM's global function that writes the packed modules to an object file
_PACK = "codegen.codegen_blob"
_DYNAMIC = b"tirx.use_dyn_shared_memory"  # tag of a launch that gives bytes of shared memory
_HOST = "_lib"  # kind of the host module, the library itself


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The code of one device module inside a packed library."""

    format: str  # format of the code: "cuda" for CUDA source, "hsaco" for AMD machine code
    signatures: bytes  # kernel signatures as TVM's bytes
    # kernel name -> launch parameters such as "blockIdx.x", parsed from the signatures
    launches: Mapping[str, tuple[str, ...]]
    code: bytes

    @property
    def kernels(self) -> tuple[str, ...]:
        """Return the names of the module's kernels."""
        return tuple(self.launches)

    def with_tag(self, tag: str) -> DeviceCode:
        """Return the module with a launch parameter that is no number, such as an attribute."""
        reader, parts = _Reader(self.signatures), []
        count = reader.number()
        parts.append(struct.pack("<Q", count))
        for _ in range(count):
            start = reader.at
            reader.text(), reader.text()
            reader.skip(4 * reader.number())
            parts.append(self.signatures[start : reader.at])
            tags = [reader.text() for _ in range(reader.number())]
            at = len(tags) - (tags[-1:] == [_DYNAMIC])  # which has to be the last
            tags.insert(at, tag.encode())
            parts += [struct.pack("<Q", len(tags)), *map(_text, tags)]
            start = reader.at
            reader.skip(4 * reader.number())
            parts.append(self.signatures[start : reader.at])
        reader.finish()
        signatures = b"".join(parts)
        launches = {name: (*tags, tag) for name, tags in self.launches.items()}
        return replace(self, signatures=signatures, launches=launches)

    def to_bytes(self) -> bytes:
        """Return the module as the bytes that TVM's runtime reads."""
        return _text(self.format.encode()) + self.signatures + _text(self.code)


Edit = Callable[[DeviceCode], DeviceCode]


def device_code(blob: bytes, kind: str) -> list[DeviceCode]:
    """Return the device modules of one kind ("cuda", "hip") in a packed library's bytes."""
    codes: list[DeviceCode] = []

    def keep(code: DeviceCode) -> DeviceCode:
        codes.append(code)
        return code

    edited(blob, kind, keep)
    return codes


def edited(blob: bytes, kind: str, edit: Edit) -> bytes:
    """Return the packed library's bytes with every module of `kind` replaced by `edit`."""
    reader = _Reader(blob)
    size = reader.number()
    assert size == len(blob) - 8, f"a blob of {len(blob)} bytes says that {size} follow"
    rows, children = reader.numbers(), reader.numbers()
    parts = [_numbers(rows), _numbers(children)]
    for _ in rows[1:]:
        name = reader.text()
        parts.append(_text(name))
        if name.decode() != _HOST:
            content = reader.text()
            if name.decode() == kind:
                content = edit(parse(content)).to_bytes()
            parts.append(_text(content))
    reader.finish()
    image = b"".join(parts)
    return struct.pack("<Q", len(image)) + image


@contextmanager
def packed_with(kind: str, edit: Edit) -> Iterator[None]:
    """Context in which TVM packs libraries with every module of `kind` replaced by `edit`."""
    before = tvm_ffi.get_global_func(_PACK)

    def pack(blob: Any, *rest: Any) -> Any:
        return before(edited(bytes(blob), kind, edit), *rest)

    tvm_ffi.register_global_func(_PACK, pack, override=True)
    try:
        yield
    finally:
        tvm_ffi.register_global_func(_PACK, before, override=True)


def parse(content: bytes) -> DeviceCode:
    """Parse the bytes of one device module."""
    reader = _Reader(content)
    kind = reader.text().decode()
    start = reader.at
    launches: dict[str, tuple[str, ...]] = {}
    for _ in range(reader.number()):
        name = reader.text().decode()
        reader.text()  # skips the kernel's name, which the key repeats
        reader.skip(4 * reader.number())  # skips the dtypes of the kernel's arguments
        launches[name] = tuple(reader.text().decode() for _ in range(reader.number()))
        reader.skip(4 * reader.number())  # skips the flags of arguments that are tensor maps
    signatures = content[start : reader.at]
    code = reader.text()
    reader.finish()
    return DeviceCode(format=kind, signatures=signatures, launches=launches, code=code)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def skip(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        assert len(part) == size, f"{size} bytes at {self.at} of {len(self.data)}"
        self.at += size
        return part

    def number(self) -> int:
        return int(struct.unpack("<Q", self.skip(8))[0])

    def numbers(self) -> tuple[int, ...]:
        count = self.number()
        return struct.unpack(f"<{count}Q", self.skip(8 * count))

    def text(self) -> bytes:
        return self.skip(self.number())

    def finish(self) -> None:
        assert self.at == len(self.data), f"{len(self.data) - self.at} bytes are left over"


def _text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def _numbers(values: tuple[int, ...]) -> bytes:
    return struct.pack(f"<Q{len(values)}Q", len(values), *values)

"""Reads the header of a GGUF file: the metadata, and the location of each tensor.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The reader trusts no size in the
file: it does not read past the end, and allocates no more than the file contains. It replaces the
reader of the package `gguf`, which trusts sizes and takes seconds because it creates an array for
each token; only the package's tables of types are used.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np

from wherry.errors import ModelError

from .types import Layout, layout_of

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)  # version 1, in use in August 2023 only, has other integer sizes
_LONGEST = 512 << 20  # maximum header size, bytes; the largest known ones have 30 MB
_CHUNK = 1 << 20  # size of one read, bytes
_MOST_DIMENSIONS = 4
_ALIGNMENT = 32  # bytes; the default of "general.alignment"
# Codes of metadata types -> NumPy dtypes.
_NUMBERS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4"}
_NUMBERS |= {7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """The name, shape, type and location of a tensor in a file."""

    path: Path
    name: str
    shape: tuple[int, ...]  # slowest axis first, as in NumPy; GGUF has the reverse order
    layout: Layout
    offset: int  # bytes from the beginning of the file

    @property
    def nbytes(self) -> int:
        """Return the size in the file, in bytes."""
        return prod(self.shape[:-1]) * self.layout.row_bytes(self.shape[-1])


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one file: everything before the weights."""

    path: Path
    metadata: MappingProxyType[str, Any]  # numbers, strings, NumPy arrays, lists of strings
    tensors: tuple[TensorEntry, ...]
    digest: str  # SHA-256 of the header


def read_header(path: Path) -> Header:
    """Read the header of a GGUF file.

    Raises:
        ModelError: the file is damaged or truncated, has an unsupported version, or cannot be
            read.
    """
    try:
        with path.open("rb") as f:
            return _Reader(path, f).header()
    except OSError as e:
        raise ModelError(f"{path} cannot be read: {e.strerror}.") from e
    except _Damage as e:
        raise ModelError(f"{path} is not a GGUF file that can be read: {e}.") from e


class _Damage(ValueError):
    """A damaged or unsupported header; the message gives the reason."""


class _Reader:
    """Sequential reader of a header; `at` is the number of bytes that it has consumed.

    All methods raise `_Damage` if the header is damaged, truncated or unsupported.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.size = path.stat().st_size
        self.at = 0
        self.buffer = b""
        self.first = 0  # offset of `buffer` in the file, bytes

    def header(self) -> Header:
        """Read the whole header."""
        count_tensors, count_values = self.begin()
        metadata: dict[str, Any] = {}
        for _ in range(count_values):
            key = self.string()
            if key in metadata:
                raise _Damage(f"it has {key[:100]!r} twice")
            metadata[key] = self.value(key)
        stored = [self.tensor() for _ in range(count_tensors)]
        tensors = self.placed(stored, _alignment(metadata))
        return Header(self.path, MappingProxyType(metadata), tensors, self.digest())

    def begin(self) -> tuple[int, int]:
        """Check magic number and version; return the numbers of tensors and of metadata fields."""
        if (magic := self.take(4)) != _MAGIC:
            raise _Damage(f"it begins with {magic!r}, not with {_MAGIC!r}")
        version = self.number("<I")
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
            why = "its bytes are in big-endian order" if swapped else f"it has version {version}"
            raise _Damage(f"{why}; versions {' and '.join(map(str, _VERSIONS))} are read")
        tensors, values = self.number("<Q"), self.number("<Q")
        self.room(tensors, 24, "tensors")
        self.room(values, 13, "values of metadata")
        return tensors, values

    def room(self, count: int, least: int, what: str) -> None:
        """Check that `count` items of at least `least` bytes each fit into the rest of the file."""
        if count * least > self.size - self.at:
            raise _Damage(f"it claims {count} {what}, and has {self.size} bytes")

    def take(self, count: int) -> bytes:
        """Consume the next `count` bytes and return them."""
        start = self.at - self.first
        if len(self.buffer) - start < count:
            if count > self.size - self.at:
                raise _Damage(f"it ends at byte {self.size}, within its header")
            if self.at + count > _LONGEST:
                raise _Damage(f"its header is longer than {_LONGEST >> 20} MB")
            more = self.file.read(max(count, _CHUNK))
            self.buffer, self.first, start = self.buffer[start:] + more, self.at, 0
            if len(self.buffer) < count:
                raise _Damage("it became shorter while it was read")
        self.at += count
        return self.buffer[start : start + count]

    def digest(self) -> str:
        """Return the SHA-256 of the consumed bytes, in hexadecimal digits."""
        sha256 = hashlib.sha256()
        self.file.seek(0)
        for start in range(0, self.at, _CHUNK):
            sha256.update(self.file.read(min(_CHUNK, self.at - start)))
        return sha256.hexdigest()

    def number(self, code: str) -> Any:
        """Read one number with a format code of the module `struct`."""
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def string(self) -> str:
        """Read a string: its length in bytes as uint64, then UTF-8."""
        take = self.take
        try:
            return take(int.from_bytes(take(8), "little")).decode()
        except UnicodeDecodeError as e:
            raise _Damage(f"it has a string that is not UTF-8, before byte {self.at}") from e

    def value(self, key: str) -> Any:
        """Read the type code and the value of a metadata field; `key` is for error messages."""
        kind = self.number("<I")
        if kind in _NUMBERS:
            return self.numbers(_NUMBERS[kind], 1)[0].item()
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            raise _Damage(f"{key[:100]!r} has the type {kind}, which GGUF does not have")
        kind, count = self.number("<I"), self.number("<Q")
        if kind == _STRING:
            self.room(count, 8, f"strings in {key[:100]!r}")
            return [self.string() for _ in range(count)]
        if kind not in _NUMBERS:
            raise _Damage(f"{key[:100]!r} is an array of the type {kind}, which is not read")
        return self.numbers(_NUMBERS[kind], count)

    def numbers(self, dtype: str, count: int) -> Any:
        """Read `count` numbers as a NumPy array of `dtype`."""
        self.room(count, np.dtype(dtype).itemsize, "numbers in an array")
        raw = np.frombuffer(self.take(count * np.dtype(dtype).itemsize), np.uint8)
        # A NumPy bool whose byte is neither 0 nor 1 would have undefined behaviour.
        return raw != 0 if dtype == "?" else raw.view(dtype)

    def tensor(self) -> TensorEntry:
        """Read a tensor's record; its `offset` is relative to the beginning of the tensor data."""
        name = self.string()
        dimensions = self.number("<I")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise _Damage(f"{name[:100]!r} has {dimensions} dimensions; 1 to 4 are read")
        shape = tuple(self.number("<Q") for _ in range(dimensions))[::-1]
        if not all(shape) or prod(shape) >= 2**48:
            raise _Damage(f"{name[:100]!r} has the shape {list(shape)}")
        layout = layout_of(kind := self.number("<I"))
        if layout is None:
            raise _Damage(f"{name[:100]!r} is of the type {kind}, which is not known here")
        if shape[-1] % layout.values:
            raise _Damage(
                f"{name[:100]!r} has rows of {shape[-1]} values; {layout.name} has blocks of "
                f"{layout.values}"
            )
        return TensorEntry(self.path, name, shape, layout, self.number("<Q"))

    def placed(self, stored: list[TensorEntry], alignment: int) -> tuple[TensorEntry, ...]:
        """Return the tensors with offsets from the beginning of the file.

        Checks that names are unique, and that tensors are aligned, do not overlap, and end within
        the file.
        """
        base = -(-self.at // alignment) * alignment
        tensors = [replace(t, offset=base + t.offset) for t in stored]
        end = base
        names: set[str] = set()
        for tensor in sorted(tensors, key=lambda t: t.offset):
            if tensor.name in names:
                raise _Damage(f"it has the tensor {tensor.name[:100]!r} twice")
            names.add(tensor.name)
            if tensor.offset < end or tensor.offset % alignment:
                raise _Damage(f"{tensor.name[:100]!r} begins at byte {tensor.offset}")
            end = tensor.offset + tensor.nbytes
            if end > self.size:
                raise _Damage(
                    f"{tensor.name[:100]!r} ends at byte {end}, the file at {self.size}: it is "
                    "damaged, or was not downloaded completely"
                )
        return tuple(tensors)


def _alignment(metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if type(alignment) is not int or not 1 <= alignment <= 1 << 20 or alignment & (alignment - 1):
        raise _Damage(f"general.alignment is {str(alignment)[:100]}; it is a power of two")
    return alignment

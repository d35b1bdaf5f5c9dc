"""Reads GPTQ: integers packed along `in`, and optionally act-order.

Layout, of a module with bits b, [out, in] and g groups (GPTQModel's and AutoGPTQ's):

    qweight  int32 [in * b / 32, out]   32 / b integers a word, lowest bits first
    qzeros   int32 [g, out * b / 32]    zero points, one smaller than meant in version 1
    scales   float [g, out]
    g_idx    int32 [in]                 the group of each column; without it, i // (in / g)

    w[o, i] = (q[i, o] - z[g_idx[i], o]) * scales[g_idx[i], o]

Act-order quantizes columns by the size of their activations, so groups are not consecutive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .bits import unpack, words_of
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces, by_group

BITS = (2, 3, 4, 8)
# Names of the layout in `checkpoint_format` -> what is added to a stored zero point.
_VERSIONS = {"gptq": 1, "gptq_v2": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class GptqMatrix(AffineModule):
    """A module in GPTQ's layout."""

    added: int  # to a stored zero point
    indexed: bool  # whether there is a g_idx
    # The packed integers of the last call. Rows of the matrix are columns of the file, so a block
    # of rows needs the whole tensor.
    read_arrays: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"GPTQ {self.bits}-bit"

    def groups(self) -> NDArray[np.int64]:
        """See `AffineMatrix.groups`.

        Raises:
            ModelError: g_idx names groups that do not exist.
        """
        if not self.indexed:
            return by_group(self.shape[1], self.group)
        indices = self.checkpoint.read_raw(f"{self.module}g_idx").astype(np.int64)
        count = self.checkpoint.tensors[f"{self.module}scales"].shape[0]
        if indices.min() < 0 or indices.max() >= count:
            raise ModelError(
                f"{self.module}g_idx has groups {indices.min()} to {indices.max()}, and {count} "
                "scales a column: the file is damaged; download it again."
            )
        return indices

    def scales(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """See `AffineMatrix.scales`."""
        return self._scales(0, self.shape[0])

    def _scales(self, start: int, stop: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        scale = self.checkpoint.read(f"{self.module}scales")[:, start:stop].T
        packed = self.checkpoint.read_raw(f"{self.module}qzeros")
        zero = unpack(packed, self.bits, self.shape[0])[:, start:stop].T
        meant = (zero + np.uint8(self.added)) & np.uint8(2**self.bits - 1)
        return np.ascontiguousarray(scale), np.ascontiguousarray(meant)

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        name = f"{self.module}qweight"
        if name not in self.read_arrays:
            self.read_arrays[name] = self.checkpoint.read_raw(name)
        words = np.ascontiguousarray(self.read_arrays[name][:, start:stop].T)
        if stop == self.shape[0]:
            self.read_arrays.clear()
        return AffineRows(unpack(words, self.bits, self.shape[1]), *self._scales(start, stop))

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def read_gptq(pieces: Pieces) -> None:
    """Take the modules of a GPTQ checkpoint.

    Raises:
        ModelError: the layout is another one.
    """
    version = pieces.settings.get("checkpoint_format", "gptq")
    if not isinstance(version, str) or version not in _VERSIONS:
        raise ModelError(
            f"{pieces.checkpoint.folder} has GPTQ weights with checkpoint_format "
            f"{repr(version)[:100]}; Wherry reads {' and '.join(_VERSIONS)}. Save the model in one "
            "of them: GPTQModel's save(DIR) does."
        )
    for module in pieces.modules("qweight"):
        _module(pieces, module, _VERSIONS[version])


def _module(pieces: Pieces, module: str, added: int) -> None:
    words = pieces.take(f"{module}qweight", ("I32",), (None, None))
    if words is None:
        return
    out = words.shape[1]
    scales = pieces.take(f"{module}scales", SCALES, (None, out))
    index = pieces.has(f"{module}g_idx")
    given = pieces.take(f"{module}g_idx", ("I32", "I64"), (None,)) if index else None
    bits = pieces.settings.get("bits")
    if given is not None:  # the tensors say more than the settings, which modules may override
        bits = 32 * words.shape[0] / given.shape[0]
    if bits not in BITS:
        pieces.wrong(
            f"{module}qweight has {repr(bits)[:50]} bits, expected {', '.join(map(str, BITS))}"
        )
        return
    bits, columns = int(bits), int(32 * words.shape[0] // int(bits))
    if scales is None:
        return
    count = scales.shape[0]
    zeros = pieces.take(f"{module}qzeros", ("I32",), (count, words_of(out, bits)))
    if columns < count or (not given and columns % count):
        pieces.wrong(f"{module}scales has {count} groups for {columns} columns")
    elif zeros is not None and words.shape[0] == words_of(columns, bits):
        pieces.matrices[f"{module}weight"] = GptqMatrix(
            checkpoint=pieces.checkpoint,
            module=module,
            shape=(out, columns),
            bits=bits,
            group=-(-columns // count),
            scale_dtype=scales.dtype,
            added=added,
            indexed=index,
        )

"""Reads AWQ's layout "gemm": integers packed along `out`, in an order of their own.

Layout, of a module [out, in] with 4 bits and g groups of consecutive columns:

    qweight  int32 [in, out / 8]   eight integers a word, of the rows 0, 2, 4, 6, 1, 3, 5, 7
    qzeros   int32 [g, out / 8]    packed alike
    scales   float [g, out]

    w[o, i] = (q[i, o] - z[i // group, o]) * scales[i // group, o]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .bits import unpack
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces

_PLACES = np.array([0, 4, 1, 5, 2, 6, 3, 7])  # of rows 0 to 7 in a word


@dataclass(frozen=True, slots=True, kw_only=True)
class AwqMatrix(AffineModule):
    """A module in AWQ's layout."""

    # The packed integers of the last call: rows of the matrix are columns of the file.
    read_arrays: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return "AWQ 4-bit"

    def scales(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """See `AffineMatrix.scales`."""
        scale = self.checkpoint.read(f"{self.module}scales").T
        zero = _unpacked(self.checkpoint.read_raw(f"{self.module}qzeros"), 0, self.shape[0])
        return np.ascontiguousarray(scale), zero

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        name = f"{self.module}qweight"
        if name not in self.read_arrays:
            self.read_arrays[name] = self.checkpoint.read_raw(name)
        q = _unpacked(self.read_arrays[name], start, stop)
        if stop == self.shape[0]:
            self.read_arrays.clear()
        scale, zero = self.scales()
        return AffineRows(q, scale[start:stop], zero[start:stop])

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def _unpacked(words: NDArray[Any], start: int, stop: int) -> NDArray[np.uint8]:
    """Unpack words [n, out / 8] -> rows [start, stop), uint8 [stop - start, n]."""
    first = start // 8
    own = np.ascontiguousarray(words[:, first : -(-stop // 8)])
    places = unpack(own, 4, 8 * own.shape[1]).reshape(len(own), -1, 8)[:, :, _PLACES]
    rows = places.reshape(len(own), -1)[:, start - 8 * first : stop - 8 * first]
    return np.ascontiguousarray(rows.T)


def read_awq(pieces: Pieces) -> None:
    """Take the modules of an AWQ checkpoint.

    Raises:
        ModelError: the layout is another one.
    """
    version, bits = pieces.settings.get("version", "gemm"), pieces.settings.get("bits", 4)
    if str(version).lower() != "gemm" or bits != 4:
        raise ModelError(
            f"{pieces.checkpoint.folder} has AWQ weights of version {repr(version)[:100]} with "
            f"{repr(bits)[:100]} bits; Wherry reads version 'gemm' with 4 bits. Take such a "
            "checkpoint, or use the original model, and --quant."
        )
    for module in pieces.modules("qweight"):
        words = pieces.take(f"{module}qweight", ("I32",), (None, None))
        if words is None:
            continue
        columns, out = words.shape[0], 8 * words.shape[1]
        scales = pieces.take(f"{module}scales", SCALES, (None, out))
        if scales is None:
            continue
        count = scales.shape[0]
        zeros = pieces.take(f"{module}qzeros", ("I32",), (count, words.shape[1]))
        group = pieces.group(f"{module}scales", count, columns)
        if group and zeros is not None:
            pieces.matrices[f"{module}weight"] = AwqMatrix(
                bits=4,
                checkpoint=pieces.checkpoint,
                module=module,
                shape=(out, columns),
                group=group,
                scale_dtype=scales.dtype,
            )

"""Matrices of 8-bit and 4-bit floats with scales for blocks, rows or the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.quant.blocks import BLOCKS, FLOATS_8, BlockQuant

from ..tensors import Checkpoint
from .bits import TABLES, fp4
from .pieces import SCALES, Pieces, numbers

FP8 = ("F8_E4M3", "F8_E5M2")
_SCHEMES = {scheme.name: scheme for scheme in (*BLOCKS, *FLOATS_8)}
_CHECKED = 1 << 24  # weights whose scales are checked at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledMatrix:
    """w[r, c] = number[r, c] * (scale[r // rows, c // columns] * factor).

    The numbers are FP8 in a tensor [out, in], or FP4 in one [out, in / 2], in which the low half of
    a byte is the even column. MLX has four bytes in a word. Blocks at the end of a matrix may be
    smaller.
    """

    checkpoint: Checkpoint
    weight: str  # name of the tensor of numbers
    scale: str  # name of the tensor of scales
    shape: tuple[int, int]
    block: tuple[int, int]  # rows and columns that share a scale
    kind: str
    factor: str = ""  # name of a tensor with one second scale
    divides: bool = False  # whether scales are divided by it
    # safetensors names of the dtypes, where those of the tensors are other ones, of bytes or words
    number_dtype: str = ""
    scale_dtype: str = ""

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        rows, columns = self.block
        grid = self._scales(0, None).reshape(-1, -(-self.shape[1] // columns))
        if self.factor:
            second = numbers(self.checkpoint, self.factor).reshape(())
            with np.errstate(divide="ignore", invalid="ignore"):  # the conversion finds NaN
                grid = grid / second if self.divides else grid * second
        of_row, of_column = np.arange(start, stop) // rows, np.arange(self.shape[1]) // columns
        raw = self.checkpoint.read_raw(self.weight, start, stop).view(np.uint8)
        dtype = self.number_dtype or self.checkpoint.tensors[self.weight].dtype
        values = TABLES[dtype][raw] if dtype in TABLES else fp4(raw)
        with np.errstate(over="ignore", invalid="ignore"):
            weights: NDArray[np.float32] = (
                values.reshape(stop - start, -1) * grid[of_row][:, of_column]
            )
        return weights

    def _scales(self, start: int, stop: int | None) -> NDArray[np.float32]:
        """Return rows of the tensor of scales."""
        scales: NDArray[np.float32]
        if self.scale_dtype:
            scales = TABLES[self.scale_dtype][self.checkpoint.read_raw(self.scale, start, stop)]
        else:
            scales = numbers(self.checkpoint, self.scale, start, stop)
        return scales

    @property
    def lossless_scheme(self) -> BlockQuant | None:
        """Return the scheme that has the bits; None: there is none."""
        scheme = self._scheme
        if scheme is None or self.shape[1] % scheme.format.multiple:
            return None
        kind = scheme.format.bytes
        if kind is None:
            return scheme
        least_nan = 255 if kind == "e8m0" else 127  # or a negative scale
        step = max(1, _CHECKED // self.shape[1])
        for start in range(0, self.shape[0], step):
            stop = min(start + step, self.shape[0])
            if (self.checkpoint.read_raw(self.scale, start, stop) >= least_nan).any():
                return None
        return scheme

    @property
    def _scheme(self) -> BlockQuant | None:
        """Return the scheme of the format, whatever its numbers are."""
        groups = {"MXFP4": 32, "NVFP4": 16, "MXFP8": 32}
        if self.kind in groups:
            return _SCHEMES[self.kind] if self.block == (1, groups[self.kind]) else None
        dtype = self.checkpoint.tensors[self.weight].dtype
        if dtype != "F8_E4M3" or self.factor:
            return None
        if self.block[1] >= self.shape[1]:
            return _SCHEMES["FP8_ROW"]
        return _SCHEMES["FP8_G128"] if self.block[1] == 128 else None

    def stored(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return rows [start, stop) as the scheme `lossless_scheme` stores them.

        A second scale that divides becomes its reciprocal, rounded to float32.
        """
        own = self._scheme
        assert own is not None
        codes = self.checkpoint.read_raw(self.weight, start, stop)
        arrays: dict[str, NDArray[Any]] = {
            "q_weight": codes.view("<u4").astype(np.uint32, copy=False)
        }
        if own.format.bytes is not None:
            scales = self.checkpoint.read_raw(self.scale, start, stop).view(np.uint8)
            scales = np.pad(scales, ((0, 0), (0, -scales.shape[1] % 4)))
            arrays["q_scale"] = np.full((stop - start, 1), self._unit(own), np.float32)
            arrays["q_sub"] = scales.view("<u4").astype(np.uint32, copy=False)
        else:
            grid = self._scales(0, None).reshape(-1, -(-self.shape[1] // self.block[1]))
            arrays["q_scale"] = grid[np.arange(start, stop) // self.block[0]]
        if own.format.e4m3:  # the conversion finds rows whose scales are no numbers
            wrong = (codes.view(np.uint8) & 127 == 127).any(axis=1, keepdims=True)
            arrays["q_scale"] = np.where(wrong, np.float32(np.nan), arrays["q_scale"])
        return {name: arrays[name] for name in own.format.columns}

    def _unit(self, own: BlockQuant) -> np.float32:
        """Return what the scales of groups are multiplied by."""
        # codebooks have twice the numbers
        unit = np.float32(0.5 if own.format.codebook else 1)
        if not self.factor:
            return unit
        second = np.float32(numbers(self.checkpoint, self.factor).reshape(()))
        with np.errstate(divide="ignore"):  # the conversion finds infinities
            return np.float32(unit / second if self.divides else unit * second)


def read_scaled(
    pieces: Pieces, module: str, scale: str, kind: str, *, block: tuple[int, int] | None
) -> None:
    """Take a module with an FP8 weight.

    Args:
        pieces: the checkpoint's tensors.
        module: the module's name, with a dot at the end.
        scale: the suffix of its scales: one, one a row, or [out / rows, in / columns] of blocks.
        kind: the format's name, for messages.
        block: rows and columns of a block; None: the checkpoint has no blocks.
    """
    weight = pieces.take(f"{module}weight", FP8, (None, None))
    if weight is None:
        return
    out, columns = weight.shape
    scales = pieces.checkpoint.tensors.get(module + scale)
    size = (1,) if scales is None else scales.shape
    if size in ((), (1,), (1, 1)):
        own, expected = weight.shape, size
    elif size in ((out,), (out, 1)):
        own, expected = (1, columns), size
    else:
        own = block or (1, columns)
        expected = (-(-out // own[0]), -(-columns // own[1]))
    if pieces.take(module + scale, (*SCALES, "F8_E8M0"), expected) is not None:
        pieces.matrices[f"{module}weight"] = ScaledMatrix(
            checkpoint=pieces.checkpoint,
            weight=f"{module}weight",
            scale=module + scale,
            shape=(out, columns),
            block=(own[0], own[1]),
            kind=kind,
        )


def read_nvfp4(pieces: Pieces, module: str, weight: str, factor: str, *, divides: bool) -> None:
    """Take a module of NVFP4: uint8 [out, in / 2], E4M3 scales [out, in / 16], a second scale."""
    packed = pieces.take(module + weight, ("U8",), (None, None))
    if packed is None:
        return
    out, columns = packed.shape[0], 2 * packed.shape[1]
    scale, second = f"{module}weight_scale", module + factor
    groups = pieces.take(scale, ("F8_E4M3",), (out, -(-columns // 16)))
    size = pieces.checkpoint.tensors[second].shape if pieces.has(second) else ()
    one = pieces.take(second, ("F32",), size if size in ((), (1,), (1, 1)) else (1,))
    if groups is not None and one is not None:
        pieces.matrices[f"{module}weight"] = ScaledMatrix(
            checkpoint=pieces.checkpoint,
            weight=module + weight,
            scale=scale,
            shape=(out, columns),
            block=(1, 16),
            kind="NVFP4",
            factor=second,
            divides=divides,
        )

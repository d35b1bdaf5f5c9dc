"""Reads compressed-tensors, the format of LLM Compressor (https://github.com/vllm-project).

Layout of a module [out, in], by its `format`; s is the shape of scales: [out, in / group],
[out, 1], [1], or blocks:

    pack-quantized        weight_packed int32 [out, in * b / 32], lowest bits first, offset by
                          2^(b-1); weight_scale s; weight_zero_point int32, packed along `out`, if
                          asymmetric; weight_shape int64 [2]; weight_g_idx int32 [in] of act-order
    int-quantized         weight int8 [out, in], weight_scale s, weight_zero_point int8 s
    float-quantized       weight F8_E4M3 [out, in], weight_scale s
    nvfp4-pack-quantized  weight_packed uint8 [out, in / 2], weight_scale F8_E4M3 [out, in / 16],
                          weight_global_scale [1], which divides scales

The tensors of a module tell its format, so that files of mixed precision are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError

from .bits import unpack, words_of
from .matrix import AffineRows
from .pieces import SCALES, AffineModule, Pieces, by_group
from .scaled import FP8, read_nvfp4, read_scaled

FORMATS = (
    "pack-quantized",
    "int-quantized",
    "naive-quantized",
    "float-quantized",
    "nvfp4-pack-quantized",
    "mixed-precision",
    "dense",
)
_DROPPED = "input_scale input_zero_point input_global_scale output_scale output_zero_point".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedMatrix(AffineModule):
    """A module of integers, packed or in bytes."""

    packed: bool  # whether integers are packed into words
    zeros: bool  # whether there are zero points
    indexed: bool  # whether there is a g_idx

    @property
    def kind(self) -> str:
        """See `Matrix.kind`."""
        return f"compressed-tensors int{self.bits}"

    @property
    def count(self) -> int:
        """Return the number of groups of a row."""
        return -(-self.shape[1] // self.group)

    def groups(self) -> NDArray[np.int64]:
        """See `AffineMatrix.groups`.

        Raises:
            ModelError: the index names groups that do not exist.
        """
        plain = by_group(self.shape[1], self.group)
        if not self.indexed:
            return plain
        indices = self.checkpoint.read_raw(f"{self.module}weight_g_idx").astype(np.int64)
        if (indices == -1).all():  # what an unused index contains
            return plain
        if indices.min() < 0 or indices.max() >= self.count:
            raise ModelError(
                f"{self.module}weight_g_idx has groups {indices.min()} to {indices.max()} of "
                f"{self.count}: the file is damaged; download it again."
            )
        return indices

    def scales(self) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """See `AffineMatrix.scales`."""
        shape = (self.shape[0], self.count)
        name = f"{self.module}weight_scale"
        scale = self.checkpoint.read(name)
        scale = np.broadcast_to(scale.reshape(-1, self.count), shape)
        if not self.zeros:
            return scale, np.full(shape, 2 ** (self.bits - 1), np.uint8)
        raw = self.checkpoint.read_raw(f"{self.module}weight_zero_point")
        if raw.dtype == np.int8:
            zero = (raw.astype(np.int16) + 2 ** (self.bits - 1)).astype(np.uint8)
            return scale, np.broadcast_to(zero.reshape(-1, self.count), shape)
        return scale, np.ascontiguousarray(unpack(raw.T, self.bits, self.shape[0]).T)

    def rows(self, start: int, stop: int) -> AffineRows:
        """See `AffineMatrix.rows`."""
        if self.packed:
            words = self.checkpoint.read_raw(f"{self.module}weight_packed", start, stop)
            q = unpack(words, self.bits, self.shape[1])
        else:
            raw = self.checkpoint.read_raw(f"{self.module}weight", start, stop)
            q = raw.view(np.uint8) ^ np.uint8(128)  # adds 128
        scale, zero = self.scales()
        return AffineRows(q, scale[start:stop], zero[start:stop])

    def floats(self, start: int, stop: int) -> NDArray[np.float32]:
        """See `Matrix.floats`."""
        return self.rows(start, stop).floats(self.groups())


def read_compressed(pieces: Pieces) -> None:
    """Take the modules of a checkpoint in compressed-tensors.

    Raises:
        ModelError: it has formats, sparsity or rotations that are not read.
    """
    bits, block = _checked(pieces)
    for module in pieces.modules("weight_packed"):
        if pieces.dtype(f"{module}weight_packed") == "U8":
            read_nvfp4(pieces, module, "weight_packed", "weight_global_scale", divides=True)
        else:
            _packed(pieces, module, bits)
        pieces.drop(*(module + name for name in _DROPPED))
    for module in pieces.modules("weight"):
        dtype = pieces.dtype(f"{module}weight")
        if dtype in FP8:
            read_scaled(pieces, module, "weight_scale", "FP8", block=block)
        elif dtype == "I8":
            _bytes(pieces, module)
        pieces.drop(*(module + name for name in _DROPPED))
    for suffix in ("k_scale", "v_scale", "k_zero_point", "v_zero_point", "q_scale"):
        pieces.drop(*(module + suffix for module in pieces.modules(suffix)))


def _checked(pieces: Pieces) -> tuple[set[int], tuple[int, int] | None]:
    """Return the numbers of bits and the block of the groups of modules in the settings."""
    settings, folder = pieces.settings, pieces.checkpoint.folder
    groups = settings.get("config_groups")
    groups = list(groups.values()) if isinstance(groups, Mapping) else []
    schemes = [g for g in groups if isinstance(g, Mapping)]
    named = {repr(s.get("format")) for s in (settings, *schemes) if s.get("format") is not None}
    if unknown := sorted(named - {repr(name) for name in FORMATS}):
        raise ModelError(
            f"{folder} has compressed-tensors of format {', '.join(unknown)[:200]}; Wherry reads "
            f"{', '.join(FORMATS)}. Use the original model, and --quant."
        )
    sparsity = settings.get("sparsity_config") or {}
    sparse = isinstance(sparsity, Mapping) and sparsity.get("format") not in (None, "dense")
    if sparse or settings.get("transform_config"):
        what = "sparse weights" if sparse else "rotated weights (transform_config)"
        raise ModelError(
            f"{folder} has {what}, which Wherry does not read. Use the original model, and --quant."
        )
    bits, block = set(), None
    for scheme in schemes:
        weights = scheme.get("weights")
        if isinstance(weights, Mapping):
            if type(weights.get("num_bits")) is int and 1 <= weights["num_bits"] <= 8:
                bits.add(weights["num_bits"])
            structure = weights.get("block_structure")
            if isinstance(structure, list) and all(type(n) is int and n > 0 for n in structure):
                block = (structure[0], structure[1]) if len(structure) == 2 else block
    return bits, block


def _packed(pieces: Pieces, module: str, settings: set[int]) -> None:
    words = pieces.take(f"{module}weight_packed", ("I32",), (None, None))
    shape = pieces.take(f"{module}weight_shape", ("I64", "I32"), (2,))
    if words is None or shape is None:
        return
    out, columns = (int(n) for n in pieces.checkpoint.read_raw(f"{module}weight_shape"))
    fitting = [b for b in settings if 0 < columns and words_of(columns, b) == words.shape[1]]
    if out != words.shape[0] or len(fitting) != 1:
        pieces.wrong(
            f"{module}weight_packed {list(words.shape)} is no matrix [{out}, {columns}] of "
            f"{' or '.join(map(str, sorted(settings))) or 'unknown'} bits"
        )
        return
    (bits,) = fitting
    zeros = pieces.has(f"{module}weight_zero_point")
    _affine(pieces, module, (out, columns), bits, packed=True)
    if zeros and f"{module}weight" in pieces.matrices:
        matrix = pieces.matrices[f"{module}weight"]
        assert isinstance(matrix, PackedMatrix)
        pieces.take(f"{module}weight_zero_point", ("I32",), (words_of(out, bits), matrix.count))


def _bytes(pieces: Pieces, module: str) -> None:
    weight = pieces.take(f"{module}weight", ("I8",), (None, None))
    if weight is not None:
        _affine(pieces, module, (weight.shape[0], weight.shape[1]), 8, packed=False)
    if f"{module}weight" in pieces.matrices and pieces.has(f"{module}weight_zero_point"):
        shape = pieces.checkpoint.tensors[f"{module}weight_scale"].shape
        pieces.take(f"{module}weight_zero_point", ("I8",), shape)


def _affine(
    pieces: Pieces, module: str, shape: tuple[int, int], bits: int, *, packed: bool
) -> None:
    """Add a module of integers, once its scales fit."""
    (out, columns), name = shape, f"{module}weight_scale"
    size = pieces.checkpoint.tensors[name].shape if pieces.has(name) else (out, 1)
    count = size[-1] if len(size) == 2 else 1
    expected = (out, count) if prod(size) > 1 else size
    scales = pieces.take(name, SCALES, expected)
    index = pieces.has(f"{module}weight_g_idx")
    if index:
        pieces.take(f"{module}weight_g_idx", ("I32", "I64"), (columns,))
    if scales is None:
        return
    if not count or columns % count:
        pieces.wrong(f"{name} has {count} groups for {columns} columns")
        return
    pieces.matrices[f"{module}weight"] = PackedMatrix(
        checkpoint=pieces.checkpoint,
        module=module,
        shape=shape,
        bits=bits,
        group=columns // count,
        scale_dtype=scales.dtype,
        packed=packed,
        zeros=pieces.has(f"{module}weight_zero_point"),
        indexed=index,
    )

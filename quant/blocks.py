"""Schemes that keep the blocks of llama.cpp's quantized types, bit for bit.

`wherry.ops.blocks` describes the stored tensors. They have all bits of a file's blocks in another
order: integers in the order of the weights, and fields of 6 bits in bytes. `split` makes them of
raw blocks. The source of the raw layouts is ggml-common.h of llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.ops.blocks import FORMATS, FP8, LLAMA_CPP, TCQ, TERNARY, TRELLIS, BlockFormat

from .block_encoder import BlockGrid
from .grid import rounded, words
from .raw_blocks import UNPACK
from .stored import FloatDtype, Shape, StoredTensor
from .trellis.paths import windows


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockQuant:
    """The scheme of one block type."""

    name: str  # llama.cpp's name, "Q4_K"
    float_dtype: FloatDtype = "float16"

    @property
    def format(self) -> BlockFormat:
        """Return the structure of the type."""
        return FORMATS[self.name.lower()]

    def quantizes(self, name: str, shape: Shape) -> bool:
        """Return whether the parameter is a matrix, or experts', whose rows the type can store."""
        named = name.endswith(".weight") and not name.endswith("norm.weight")
        return named and len(shape) in (2, 3) and shape[-1] % self.format.multiple == 0

    def stored(self, name: str, shape: Shape) -> tuple[StoredTensor, ...]:
        """Return the tensors that `wherry.ops.blocks` lists."""
        prefix, rows = name.removesuffix("weight"), tuple(shape[:-1])
        return tuple(
            StoredTensor(prefix + suffix, (*rows, -(-shape[-1] // each)), dtype)
            for suffix, (each, dtype) in self.format.columns.items()
        )

    def encode(self, w: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """Encode rows w [rows, in]; types of which `block_encoder.encodes` is False cannot."""
        arrays = rounded(self.grid, w)
        return {name: arrays[name] for name in self.format.columns}

    @property
    def grid(self) -> BlockGrid:
        """Return what weights are rounded to."""
        return BlockGrid(self.format)

    def split(self, blocks: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Return the stored tensors of raw rows, uint8 [rows, bytes of a row]."""
        unpacked, own = UNPACK[self.name](blocks), self.format
        integers = {"q_weight": words(unpacked["q"] & (2**own.low - 1), own.low)}
        if own.high:
            integers["q_high"] = words(unpacked["q"] >> own.low, own.high)
        floats = {name: unpacked[name] for name in ("q_scale", "q_min") if name in unpacked}
        bytes_ = {n: words(unpacked[n], 8) for n in ("q_sub", "q_submin") if n in unpacked}
        return {name: np.ascontiguousarray(a) for name, a in (integers | floats | bytes_).items()}

    def decode(
        self, stored: Mapping[str, NDArray[Any]], columns: int | None = None
    ) -> NDArray[np.float32]:
        """Dequantize the stored tensors [..., n] -> float32 [..., in], as gguf-py does."""
        own = self.format
        q = _integers(stored["q_weight"], own.low).astype(np.int32)
        if own.high:
            q |= _integers(stored["q_high"], own.high).astype(np.int32) << own.low
        values: NDArray[Any] = q - own.zero
        if own.codebook or own.e4m3:
            values = _E4M3[q] if own.e4m3 else np.array(own.codebook, np.int32)[q]
        if own.trellis:
            values = np.array(TRELLIS, np.int32)[windows(q, own.bits, own.group)]
        of_column = np.arange(q.shape[-1]) // own.group
        of_group = np.arange(of_column[-1] + 1) * own.group // own.block
        scale = stored["q_scale"].astype(np.float32)[..., of_group]
        minimum = stored["q_min"].astype(np.float32)[..., of_group] if own.minimum else None
        if own.two_levels:
            scale = scale * self._bytes(stored["q_sub"])[..., : len(of_group)]
            if minimum is not None:
                subs = _integers(stored["q_submin"], 8).astype(np.float32)
                minimum = -(minimum * subs[..., : len(of_group)])
        with np.errstate(invalid="ignore"):  # the conversion reports scales that are not finite
            w = scale[..., of_column] * values.astype(np.float32)
            if minimum is not None:
                w = w + minimum[..., of_column]
        decoded: NDArray[np.float32] = w[..., :columns]
        return decoded

    def _bytes(self, words: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the numbers that the bytes of groups are."""
        bytes_ = _integers(words, 8)
        if self.format.bytes is not None:
            return _FLOATS[self.format.bytes][bytes_]
        assert self.format.bias is not None
        return bytes_.astype(np.float32) - np.float32(self.format.bias)

    def element(self, stored: Sequence[Any], row: Any, column: Any) -> Any:
        """Return the TIR expression of one dequantized element, in float32."""
        from tvm import tirx  # only the graph needs it

        own = self.format
        tensors = dict(zip(own.columns, stored, strict=True))

        def field(name: str, bits: int, at: Any) -> Any:  # an unsigned field of a word, int32
            per = 32 // bits
            shift = (at % per * bits).astype("uint32")
            return (tensors[name][row, at // per] >> shift).astype("int32") & (2**bits - 1)

        def integer(at: Any) -> Any:
            q = field("q_weight", own.low, at)
            return q + field("q_high", own.high, at) * 2**own.low if own.high else q

        q = integer(column)
        value = _looked_up(own.codebook, q) if own.codebook else q - own.zero
        if own.trellis:
            window = q
            for before in range(1, own.memory + 1):
                inside = column % own.group >= before
                earlier = integer(tirx.if_then_else(inside, column - before, column))
                window = window + tirx.if_then_else(inside, earlier, 0) * 2 ** (before * own.bits)
            value = _looked_up(TRELLIS, window)
        if own.e4m3:
            size = _float_of(q & 127, "e4m3")
            value = tirx.Select(q < 128, size, -size)
        scale = tensors["q_scale"][row, column // own.block].astype("float32")
        minimum = None
        if own.minimum:
            minimum = tensors["q_min"][row, column // own.block].astype("float32")
        if own.two_levels:
            group = column // own.group
            byte = field("q_sub", 8, group)
            scale = scale * (_float_of(byte, own.bytes) if own.bytes else _less(byte, own.bias))
            if minimum is not None:
                minimum = -minimum * field("q_submin", 8, group).astype("float32")
        w = scale * value.astype("float32")
        return w if minimum is None else w + minimum

    def kernel_spec(self) -> dict[str, Any]:
        """Return the fields of a kernel's `LinearSpec` that depend on the scheme."""
        return {
            "scheme": self.name.lower(),
            "scale_dtype": self.format.floats,
            "group": self.format.group,
        }


def _integers(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """Unpack what `words` packed."""
    shifts = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
    unpacked: NDArray[np.uint32] = (words[..., None] >> shifts) & np.uint32(2**bits - 1)
    return unpacked.reshape(*words.shape[:-1], -1)


def _looked_up(codebook: tuple[int, ...], q: Any) -> Any:
    """Return the TIR expression of a codebook's value: a tree of selections over the bits of q.

    A constant table would be a buffer that kernels of some targets cannot have.
    """
    from tvm import tirx  # only the graph needs it

    values: list[Any] = [tirx.const(value, "int32") for value in codebook]
    bit = 1
    while len(values) > 1:
        even = (q & bit) == 0
        values = [tirx.Select(even, a, b) for a, b in zip(values[0::2], values[1::2], strict=True)]
        bit *= 2
    return values[0]


def _less(byte: Any, bias: int | None) -> Any:
    return (byte - bias).astype("float32")


def _float_of(byte: Any, kind: str) -> Any:
    """Return the TIR expression of the float that a byte is, which is finite; see `BlockFormat`."""
    from tvm import tirx

    if kind == "e8m0":  # byte 0 is 2^-127, whose bits in float32 are those of a subnormal
        return tirx.reinterpret("float32", tirx.max(byte << 23, 0x400000))
    small = byte.astype("float32") * tirx.const(2.0**-9, "float32")
    return tirx.Select(byte < 8, small, tirx.reinterpret("float32", (byte + 960) << 20))


def _floats() -> dict[str, NDArray[np.float32]]:
    """Return the floats of the 256 bytes of each kind; those that are none are NaN."""
    byte = np.arange(256)
    exponent, mantissa = byte >> 3, byte & 7
    normal = np.ldexp((8 + mantissa).astype(np.float32), np.minimum(exponent, 15) - 10)
    e4m3 = np.where(byte < 8, np.ldexp(mantissa.astype(np.float32), -9), normal)
    e8m0 = np.ldexp(np.float32(1), np.minimum(byte, 254) - 127)
    return {
        "e4m3": np.where(byte < 127, e4m3, np.float32(np.nan)).astype(np.float32),
        "e8m0": np.where(byte < 255, e8m0, np.nan).astype(np.float32),
    }


_FLOATS = _floats()
_E4M3 = np.concatenate([_FLOATS["e4m3"][:128], -_FLOATS["e4m3"][:128]])
# Types of llama.cpp; `split` makes their stored tensors.
BLOCKS = tuple(BlockQuant(name=name.upper()) for name in LLAMA_CPP)
TRELLISES = tuple(BlockQuant(name=name.upper()) for name in TCQ)
FLOATS_8 = tuple(BlockQuant(name=name.upper()) for name in FP8)
TERNARIES = tuple(BlockQuant(name=name.upper()) for name in TERNARY)

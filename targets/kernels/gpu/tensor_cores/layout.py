"""Packed weights for tensor cores, which `packing.py` computes when a model is first loaded.

A weight [N, K] is divided into row tiles of 16 rows (the last filled with zeros) and chunks of 64
columns. A chunk of a row tile is four multiplications of 16 columns each. Lane 4 r + c of a warp (c
< 4) has in step s the columns 16 c + 4 s + (0, 1, 2, 3) of rows r and r + 8: so a lane's columns of
a chunk are adjacent in a row of x, and in one group of 32 with its scale. Any assignment of columns
to lanes is possible, if x has the same. The order, in uint32, all in one tensor:

    q4   words  [tiles, chunks, lane, step]            eight numbers of 4 bits
         scales [tiles, chunks, lane / 2]              those of rows r and r + 8, float16
    q8   words  [tiles, chunks, step / 2, lane, 2, 2]  four numbers of 8 bits; scales as q4
    f16  words  [tiles, chunks, step, lane, 4]         two numbers each

Block formats (`BLOCKS`) of up to 4 bits are as q4, those of 5 to 8 bits as q8, with the two levels
of scales multiplied and rounded to float16; where 16 weights share a scale, each lane has its own.
Integers with a codebook stay indexes. Minimums, and zero points of which each scale has its own,
follow:

         offsets [as the scales]   the minimum, or 1024 + the zero point

Formats of floats (FP8, MXFP4, NVFP4) have their floats in the places of integers, scales (not where
a row has one scale alone), and then a factor of each row, which multiplies sums:

         factors [tiles, 16]       float32

Of E8M0's powers of two the largest of a row becomes the scale 2^15, so the row's weights are exact
where they are multiples of 2^-25 of that power. Such a scale is the upper byte of its float16, the
lower one 0: a word has those of the groups of row r, then of row r + 8. Scales of blocks of 128 are
relative to a power of two, too, and rounded to float16, and so are their products with the floats.

There are four pairs: (row r, columns 0 and 1), (row r + 8, the same), (row r, columns 2 and 3),
(row r + 8, the same). In float16 pair i is word i; in 4 bits its numbers are nibbles i and i + 4,
in 8 bits bytes i % 2 and i % 2 + 2 of word i / 2. A few operations dequantize a pair.

Weights of experts [E, N, K] have the layout of one weight with E times as many row tiles.
"""

from __future__ import annotations

from dataclasses import dataclass

from wherry.ops import LinearSpec
from wherry.ops.blocks import FORMATS, ROW, BlockFormat

from ..weights import fits_float16

ROWS = 16  # rows of a row tile
CHUNK = 64  # columns of a chunk
STEPS = 4  # multiplications of a chunk, 16 columns each
LANES = 32  # lanes of a warp
THREADS = LANES * STEPS
# Bits of a float -> the value of the format's numbers (twice those of e2m1) that are 1 in the
# float16 of `weights.cuh`.
UNITS = {4: 2.0**15, 8: 2.0**8}


@dataclass(frozen=True, slots=True)
class Stored:
    """How the chunks of a scheme are stored."""

    bits: int  # of a number: 4, 8 or 16
    group: int = 32  # columns that share a scale: 32 or 16; more have it several times; 0: none do
    offsets: bool = False  # whether each scale has an offset
    factors: bool = False  # whether each row has a factor, and numbers are floats
    scale_bytes: int = 2  # of a scale; 1: the upper byte of a float16

    @property
    def words(self) -> int:
        """Return the uint32 words of a chunk of a row tile."""
        return THREADS * self.bits // 4

    @property
    def scales(self) -> int:
        """Return the uint32 words of a chunk's scales."""
        return ROWS * (CHUNK // self.group) * self.scale_bytes // 4 if self.group else 0


def _stored(own: BlockFormat) -> Stored | None:
    """Return how a block format is stored; None: float16 has not its scales, or it has a trellis.

    The float32 scales of grids are a float16 times a power of two, which moves none out of range.
    """
    if own.e4m3 or own.bytes is not None:
        group = 0 if own.group == ROW else min(own.group, 32)
        return Stored(own.bits, group, factors=True, scale_bytes=1 if own.bytes == "e8m0" else 2)
    if own.trellis or (own.floats != "float16" and not own.codebook):
        return None
    return Stored(4 if own.bits <= 4 else 8, min(own.group, 32), own.minimum or own.zeros)


# Block format -> how it is stored.
BLOCKS = {name: stored for name, own in FORMATS.items() if (stored := _stored(own))}
_GROWTH = 1.2
STORED = {"q4": Stored(4), "q8": Stored(8), "f16": Stored(16, 0), **BLOCKS}


def grows(scheme: str) -> bool:
    """Return whether packed weights of a block format take more than a fifth more memory."""
    return 8 * chunk_bytes(scheme) > _GROWTH * ROWS * CHUNK * FORMATS[scheme].bits_per_weight


def fits(spec: LinearSpec) -> bool:
    """Return whether a weight can have this layout."""
    own = STORED.get(spec.scheme)
    narrow = spec.scheme in BLOCKS or fits_float16(spec)
    return own is not None and narrow and spec.in_features % CHUNK == 0


def tiles(spec: LinearSpec) -> int:
    """Return the number of row tiles of a weight."""
    return -(-spec.out_features // ROWS)


def chunks(spec: LinearSpec) -> int:
    """Return the number of chunks of a row."""
    return spec.in_features // CHUNK


def chunk_bytes(scheme: str) -> int:
    """Return the bytes of one chunk of a row tile, with its scales and offsets."""
    own = STORED[scheme]
    return 4 * (own.words + own.scales * (1 + own.offsets))


def scales_at(spec: LinearSpec, experts: int = 1) -> int:
    """Return the offset of an integer weight's scales in the packed tensor, in uint32."""
    return experts * tiles(spec) * chunks(spec) * STORED[spec.scheme].words


def size(spec: LinearSpec, experts: int = 1) -> int:
    """Return the size of the packed tensor in uint32."""
    factors = ROWS * tiles(spec) if STORED[spec.scheme].factors else 0
    return factors_at(spec, experts) + experts * factors


def offsets_at(spec: LinearSpec, experts: int = 1) -> int:
    """Return the offset in the packed tensor of a block format's offsets, in uint32."""
    own = STORED[spec.scheme]
    return experts * tiles(spec) * chunks(spec) * (own.words + own.scales)


def factors_at(spec: LinearSpec, experts: int = 1) -> int:
    """Return the offset in the packed tensor of the rows' factors, in uint32."""
    return experts * tiles(spec) * chunks(spec) * (chunk_bytes(spec.scheme) // 4)

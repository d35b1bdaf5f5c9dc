"""Random weights in the block formats of others, whose float fields are ordinary numbers."""

from __future__ import annotations

import gguf
import numpy as np

from wherry.quant.affine import AffineQuant
from wherry.quant.blocks import FLOATS_8, TERNARIES, TRELLISES, BlockQuant
from wherry.quant.grid import words

# Bytes at which a block's float16 fields begin; two is a scale and a minimum.
_HALVES = {
    **dict.fromkeys(("Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "IQ4_XS", "Q1_0", "Q2_0"), (0,)),
    **dict.fromkeys(("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"), (0,)),
    **dict.fromkeys(("Q4_1", "Q5_1", "Q4_K", "Q5_K"), (0, 2)),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q6_K": (208,),
    "TQ1_0": (52,),
    "TQ2_0": (64,),
}
_FEW_BITS = {"Q1_0": (128, 18), "Q2_0": (64, 18)}  # what the package `gguf` does not know
_TERNARY = ("TQ1_0", "TQ2_0", *_FEW_BITS)
# Types whose scales are bytes: range of the bytes, and their number in a block.
_BYTES = {"MXFP4": (118, 124, 1), "NVFP4": (1, 40, 4)}
_SCALES = {256: 2e-4, 32: 2e-3}  # of blocks with two levels, and of those with one


def random_stored(
    scheme: AffineQuant | BlockQuant, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Stored tensors of random weights in any of these schemes."""
    if isinstance(scheme, AffineQuant):
        return random_affine(scheme, rows, columns, seed)
    for kinds, array in (
        (FLOATS_8, random_floats),
        (TERNARIES, random_ternary),
        (TRELLISES, random_trellis),
    ):
        if scheme in kinds:
            return array(scheme, rows, columns, seed)
    return scheme.split(random_blocks(scheme.name, rows, columns, seed))


def dequantized(name: str, raw: np.ndarray) -> np.ndarray:
    """What raw rows of a GGUF type are: by the package `gguf`, which lacks two of them."""
    if name not in _FEW_BITS:
        return gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name])
    blocks = raw.reshape(-1, 18)
    q = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float32)
    q = 2 * q - 1 if name == "Q1_0" else q[:, ::2] + 2 * q[:, 1::2] - 1
    return (q * blocks[:, :2].copy().view(np.float16).astype(np.float32)).reshape(len(raw), -1)


def block_size(name: str) -> tuple[int, int]:
    """The weights and the bytes of a block of a GGUF type."""
    return _FEW_BITS.get(name) or gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]


def random_blocks(name: str, rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Rows of `columns` random weights of about 0.03, uint8 [rows, bytes]."""
    rng = np.random.default_rng(seed)
    values, nbytes = block_size(name)
    blocks = rng.integers(0, 256, (rows * columns // values, nbytes), np.uint8)
    if name in _BYTES:
        first, last, count = _BYTES[name]
        blocks[:, :count] = rng.integers(first, last, (len(blocks), count), np.uint8)
    for place in _HALVES.get(name, ()):
        usual = 0.03 if name in _TERNARY else _SCALES[values]
        scale = usual * rng.uniform(0.5, 1.5, len(blocks)) * (-1 if name == "Q8_0" else 1)
        if place == 2 and values == 32:
            scale = -scale * 8  # a minimum, half the range of the integers below zero
        blocks[:, place : place + 2] = scale.astype(np.float16)[:, None].view(np.uint8)
    if name == "IQ1_M":  # the upper nibbles of four words are a float16
        half = (2e-3 * rng.uniform(0.5, 1.5, (len(blocks), 1))).astype(np.float16).view(np.uint16)
        words_ = np.ascontiguousarray(blocks[:, 48:56]).view("<u2") & np.uint16(0x0FFF)
        words_ |= half >> np.array([0, 4, 8, 12], np.uint16) << np.uint16(12)
        blocks[:, 48:56] = words_.view(np.uint8)
    return blocks.reshape(rows, -1)


def random_floats(
    scheme: BlockQuant, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Stored tensors of random weights in FP8 of about 0.03; the first row has subnormals."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 0x60, (rows, columns), np.uint8) | rng.integers(
        0, 2, (rows, columns), np.uint8
    ) << np.uint8(7)
    codes[0] &= 0x87
    shapes = {t.name.rpartition(".")[2]: t.shape for t in scheme.stored("x.weight", codes.shape)}
    scale = rng.uniform(0.001, 0.004, shapes["q_scale"]).astype(np.float32)
    stored = {"q_weight": codes.view("<u4").astype(np.uint32), "q_scale": scale}
    if "q_sub" in shapes:
        words = np.uint32(0x7D7F7E80)  # powers of two around one
        stored["q_sub"] = np.full(shapes["q_sub"], words, np.uint32)
    return stored


def random_trellis(
    scheme: BlockQuant, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Stored tensors of random paths; the first rows have one integer alone, and large scales."""
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 2**scheme.format.bits, (rows, columns), np.uint8)
    q[:4] = np.array([0, 1, 2, 2**scheme.format.bits - 1], np.uint8)[:, None]
    subs = rng.integers(0, 256, (rows, columns // scheme.format.group), np.uint8)
    subs[:2] = np.array([0, 255], np.uint8)[:, None]
    blocks = -(-columns // scheme.format.block)
    return {
        "q_weight": words(q & 3, 2),
        **({"q_high": words(q >> 2, 1)} if scheme.format.high else {}),
        "q_scale": (4e-6 * rng.uniform(0.5, 1.5, (rows, blocks))).astype(np.float16),
        "q_sub": words(subs, 8),
    }


def random_ternary(
    scheme: BlockQuant, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Stored tensors of random weights of BitNet; each of the first rows has one integer alone."""
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 3, (rows, columns), np.uint8)
    q[:4] = np.arange(4, dtype=np.uint8)[:, None]
    scale = rng.uniform(0.01, 0.04, (rows, 1)).astype(np.float32)
    return {"q_weight": words(q, scheme.format.low), "q_scale": scale}


def random_affine(
    scheme: AffineQuant, rows: int, columns: int, seed: int = 0
) -> dict[str, np.ndarray]:
    """Stored tensors of random weights of about 0.03.

    The first rows have the extreme integers and zero points, 0 among them.
    """
    rng = np.random.default_rng(seed)
    most = 2**scheme.bits - 1
    shape = (rows, -(-columns // scheme.shared))
    q = rng.integers(0, most + 1, (rows, columns), np.uint8)
    scale = (0.06 / most * rng.uniform(0.5, 1.5, shape)).astype(np.float16)
    zero = rng.integers(0, most + 1, shape).astype(np.float32)
    for row, (number, origin) in enumerate(((most, 0), (0, most), (most, most), (0, 0))):
        q[row], zero[row] = number, origin
    offset = -zero * scale if scheme.has_minimum else zero
    return scheme.arrays(q, scale, offset)

"""Writes quantized modules after the layouts that their programs publish, in NumPy.

Each writer takes a matrix float32 [out, in] and returns the module's tensors by suffix and the
matrix that is left of it, float32.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Written = tuple[dict[str, np.ndarray], np.ndarray]
_DTYPES = {
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int8": "I8",
    "uint8": "U8",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "float8_e4m3fn": "F8_E4M3",
}
_AWQ_ROWS = [0, 2, 4, 6, 1, 3, 5, 7]  # in a word, lowest bits first
_NF4 = """
-1.0 -0.6961928 -0.52507305 -0.39491749 -0.28444138 -0.18477343 -0.09105004 0.0
0.07958030 0.16093020 0.24611230 0.33791524 0.44070983 0.56261700 0.72295684 1.0
"""
NF4 = np.array(_NF4.split(), np.float32)


def save(folder: Path, tensors: dict[str, np.ndarray], settings: Any, /, **config: Any) -> Path:
    """A model folder; `settings` is the content of quantization_config, if it is not None."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "model.safetensors", tensors)
    given = {"quantization_config": settings} if settings is not None else {}
    (folder / "config.json").write_text(json.dumps(given | config))
    return folder


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file; the library's functions for NumPy know neither bfloat16 nor FP8."""
    header, body = {}, b""
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        offsets = [len(body), len(body) + len(data)]
        dtype = _DTYPES[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        body += data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def stream(values: np.ndarray, bits: int) -> np.ndarray:
    """Integers [n, k] as int32 words [n, k * bits / 32], the lowest bits first."""
    single = np.unpackbits(values.astype(np.uint8)[..., None], axis=-1, bitorder="little")
    flat = single[..., :bits].reshape(len(values), -1)
    flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 32)))
    return np.packbits(flat, axis=-1, bitorder="little").view("<i4")


def quantized(
    w: np.ndarray, groups: np.ndarray, bits: int, *, symmetric: bool, dtype: Any = np.float16
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q uint8 [out, in], scale [out, g], zero uint8 [out, g], and what is left of w."""
    count, most = int(groups.max()) + 1, 2**bits - 1
    scale = np.zeros((len(w), count), dtype)
    zero = np.full((len(w), count), 2 ** (bits - 1), np.int64)
    q = np.zeros(w.shape, np.uint8)
    for g in range(count):
        own = w[:, groups == g]
        high, low = np.maximum(own.max(1), 0), np.minimum(own.min(1), 0)
        if symmetric:
            scale[:, g] = (np.maximum(high, -low) * 2 / most + 1e-5).astype(dtype)
        else:
            scale[:, g] = ((high - low) / most + 1e-5).astype(dtype)
            zero[:, g] = np.clip(np.rint(-low / scale[:, g].astype(np.float32)), 0, most)
        s = scale[:, g].astype(np.float32)[:, None]
        q[:, groups == g] = np.clip(np.rint(own / s) + zero[:, g][:, None], 0, most)
    left = (q - zero.astype(np.float32)[:, groups]) * scale.astype(np.float32)[:, groups]
    return q, scale, zero.astype(np.uint8), left.astype(np.float32)


def gptq(
    w: np.ndarray,
    *,
    bits: int = 4,
    group: int = 128,
    symmetric: bool = True,
    order: int | None = None,
    version: int = 1,
    dtype: Any = np.float16,
) -> Written:
    """GPTQ; `order`: the seed of an act-order."""
    groups = np.arange(w.shape[1]) // group
    if order is not None:
        groups = np.random.default_rng(order).permutation(groups)
    q, scale, zero, left = quantized(w, groups, bits, symmetric=symmetric, dtype=dtype)
    stored = (zero - np.uint8(version == 1)) & np.uint8(2**bits - 1)
    tensors = {
        "qweight": stream(q, bits).T,
        "qzeros": stream(stored.T, bits),
        "scales": scale.T,
        "g_idx": groups.astype(np.int32),
    }
    return tensors, left


def awq(w: np.ndarray, *, group: int = 128) -> Written:
    groups = np.arange(w.shape[1]) // group
    q, scale, zero, left = quantized(w, groups, 4, symmetric=False)

    def packed(values: np.ndarray) -> np.ndarray:  # [n, out] -> [n, out / 8]
        apart = values.reshape(len(values), -1, 8)[:, :, _AWQ_ROWS]
        return stream(apart.reshape(len(values), -1), 4)

    return {"qweight": packed(q.T), "qzeros": packed(zero.T), "scales": scale.T}, left


def compressed(
    w: np.ndarray,
    *,
    bits: int = 4,
    group: int = 128,
    symmetric: bool = True,
    dtype: Any = ml_dtypes.bfloat16,
    packed: bool = True,
) -> Written:
    """compressed-tensors: pack-quantized or int-quantized."""
    groups = np.arange(w.shape[1]) // group
    q, scale, zero, left = quantized(w, groups, bits, symmetric=symmetric, dtype=dtype)
    arrays = {"weight_scale": scale}
    if packed:
        arrays |= {"weight_packed": stream(q, bits), "weight_shape": np.array(w.shape, np.int64)}
        if not symmetric:
            arrays["weight_zero_point"] = stream(zero.T, bits).T
    else:
        arrays["weight"] = (q.astype(np.int16) - 128).astype(np.int8)
        if not symmetric:
            arrays["weight_zero_point"] = (zero.astype(np.int16) - 128).astype(np.int8)
    return arrays, left


def fp8(w: np.ndarray, *, block: tuple[int, int], suffix: str = "weight_scale_inv") -> Written:
    rows, columns = block
    grid = (-(-w.shape[0] // rows), -(-w.shape[1] // columns))
    of = np.ix_(np.arange(w.shape[0]) // rows, np.arange(w.shape[1]) // columns)
    largest = np.zeros(grid, np.float32)
    np.maximum.at(largest, of, np.abs(w))
    scale = largest / 448
    q = (w / scale[of]).astype(ml_dtypes.float8_e4m3fn)
    return {"weight": q, suffix: scale}, q.astype(np.float32) * scale[of]


def torchao(w: np.ndarray, *, bits: int = 8, group: int = 0, dtype: Any = np.float32) -> Written:
    """Integers in bytes; `group` 0: a scale a row."""
    groups = np.arange(w.shape[1]) // (group or w.shape[1])
    q, scale, zero, left = quantized(w, groups, bits, symmetric=True, dtype=dtype)
    half = 2 ** (bits - 1)
    signed = (q.astype(np.int16) - half).astype(np.int8)
    shift = (zero.astype(np.int16) - half).astype(np.int8)
    names = ("_weight_qdata", "_weight_scale", "_weight_zero_point")
    return dict(zip(names, (signed, scale, shift), strict=True)), left


def torchao_float8(w: np.ndarray) -> Written:
    arrays, left = fp8(w, block=(1, w.shape[1]))
    return {"_weight_qdata": arrays["weight"], "_weight_scale": arrays["weight_scale_inv"]}, left


def torchao_int4(w: np.ndarray, *, group: int = 64) -> Written:
    """Two integers a byte, whose zero points are the weights in the middle."""
    apart = w.reshape(len(w), -1, group)
    low, high = apart.min(-1), apart.max(-1)
    scale = ((high - low) / 15 + 1e-5).astype(ml_dtypes.bfloat16)
    s = scale.astype(np.float32)
    zero = (low + 8 * s).astype(ml_dtypes.bfloat16)
    z = zero.astype(np.float32)
    q = np.clip(np.rint((apart - z[..., None]) / s[..., None]), -8, 7).astype(np.int8)
    pairs = q.reshape(len(w), -1)
    packed = (pairs[:, ::2] & 15) | (pairs[:, 1::2] << 4)
    arrays = {"_weight_qdata": packed, "_weight_scale": scale.T, "_weight_zero_point": zero.T}
    return arrays, (q * s[..., None] + z[..., None]).reshape(w.shape)


def mlx(w: np.ndarray, *, bits: int = 4, group: int = 64) -> Written:
    out, columns = w.shape
    apart = w.reshape(out, -1, group)
    low = apart.min(-1).astype(np.float16)
    scale = ((apart.max(-1) - low) / (2**bits - 1) + 1e-5).astype(np.float16)
    s, b = scale.astype(np.float32)[..., None], low.astype(np.float32)[..., None]
    q = np.clip(np.rint((apart - b) / s), 0, 2**bits - 1).astype(np.uint8)
    words = stream(q.reshape(out, columns), bits).view(np.uint32)
    return {"weight": words, "scales": scale, "biases": low}, (q * s + b).reshape(w.shape)


def nvfp4(w: np.ndarray, *, divides: bool) -> Written:
    """ModelOpt's, or compressed-tensors', whose second scale divides."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    table = np.concatenate([values, -values])
    second = np.float32(np.abs(w).max() / (6 * 448))
    if divides:
        second = np.float32(1) / second
    apart = w.reshape(len(w), -1, 16)
    scales = np.abs(apart).max(-1) / 6
    inner = (scales * second if divides else scales / second).astype(ml_dtypes.float8_e4m3fn)
    scale = inner.astype(np.float32) / second if divides else inner.astype(np.float32) * second
    near = np.abs(apart[..., None] / np.maximum(scale, 1e-9)[..., None, None] - table)
    codes = near.argmin(-1).astype(np.uint8).reshape(w.shape)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    left = (table[codes].reshape(apart.shape) * scale[..., None]).reshape(w.shape)
    weight, factor = ("weight_packed", "weight_global_scale")
    if not divides:
        weight, factor = ("weight", "weight_scale_2")
    return {weight: packed, "weight_scale": inner, factor: np.array([second])}, left


def mlx_floats(w: np.ndarray, *, mode: str) -> Written:
    """MLX's floats of 4 or 8 bits, with a byte of scale for each group."""
    apart = w.reshape(len(w), -1, 16 if mode == "nvfp4" else 32)
    largest = np.abs(apart).max(-1) / (448 if mode == "mxfp8" else 6)
    if mode == "nvfp4":
        inner = largest.astype(ml_dtypes.float8_e4m3fn)
    else:
        inner = np.exp2(np.ceil(np.log2(largest))).astype(ml_dtypes.float8_e8m0fnu)
    scale = inner.astype(np.float32)[..., None]
    numbers = apart / np.maximum(scale, 1e-9)
    if mode == "mxfp8":
        rounded = numbers.astype(ml_dtypes.float8_e4m3fn)
        packed = rounded.view(np.uint8).reshape(w.shape)
    else:
        rounded = numbers.astype(ml_dtypes.float4_e2m1fn)
        codes = rounded.view(np.uint8).reshape(w.shape)
        packed = codes[:, 0::2] | codes[:, 1::2] << 4
    left = rounded.astype(np.float32) * scale
    return {"weight": packed.view("<u4"), "scales": inner.view(np.uint8)}, left.reshape(w.shape)


def gemma(w: np.ndarray, *, bits: int = 4) -> Written:
    """Gemma's quantization-aware training, with a scale a row."""
    most = 2 ** (bits - 1) - 1
    scale = (np.abs(w).max(1, keepdims=True) / most).astype(np.float32)
    q = np.clip(np.rint(w / scale), -most - 1, most).astype(np.int8)
    left = q.astype(np.float32) * scale
    if bits < 8:
        parts = (q + (most + 1)).astype(np.uint8).reshape(len(w), -1, 8 // bits)
        shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
        q = np.bitwise_or.reduce(parts << shifts, axis=-1)
    zero = np.array(0.25, np.float32)  # scales of activations
    activation_scales = {"input_activation_scale": zero, "output_activation_scale": zero}
    return {"weight": q, "weight_scale": scale, **activation_scales}, left


def bitnet(w: np.ndarray, *, divides: bool = False) -> Written:
    """BitNet's -1, 0 and 1 by the mean magnitude: four rows of the matrix in one of the file."""
    mean = np.abs(w).mean()
    q = np.clip(np.rint(w / mean), -1, 1)
    stored = np.array([1 / mean if divides else mean], ml_dtypes.bfloat16)
    scale = stored.astype(np.float32)
    parts = (q + 1).astype(np.uint8).reshape(4, -1, w.shape[1])
    packed = np.bitwise_or.reduce(parts << np.arange(0, 8, 2, np.uint8)[:, None, None])
    left = q * (np.float32(1) / scale if divides else scale)
    return {"weight": packed, "weight_scale": stored}, left.astype(np.float32)


def nf4(w: np.ndarray, *, nested: bool = True) -> Written:
    flat = w.reshape(-1, 64)
    largest = np.abs(flat).max(-1).astype(np.float32)
    state: dict[str, Any] = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16"}
    state["shape"] = list(w.shape)
    arrays = {"weight.quant_map": NF4}
    if nested:
        offset = np.float32(largest.mean())
        inner = np.linspace(-1, 1, 256).astype(np.float32)
        blocks = -(-len(largest) // 256)
        padded = np.pad(largest - offset, (0, blocks * 256 - len(largest))).reshape(blocks, 256)
        outer = np.abs(padded).max(-1).astype(np.float32)
        near = np.abs(padded[..., None] / outer[:, None, None] - inner).argmin(-1)
        codes = near.astype(np.uint8).reshape(-1)[: len(largest)]
        largest = inner[codes] * np.repeat(outer, 256)[: len(largest)] + offset
        arrays |= {"weight.absmax": codes, "weight.nested_absmax": outer}
        arrays["weight.nested_quant_map"] = inner
        state |= {"nested_blocksize": 256, "nested_dtype": "float32"}
        state["nested_offset"] = float(offset)
    else:
        arrays["weight.absmax"] = largest
    indexes = np.abs(flat[..., None] / largest[:, None, None] - NF4).argmin(-1).astype(np.uint8)
    pairs = indexes.reshape(-1, 2)
    arrays["weight"] = (pairs[:, :1] << 4 | pairs[:, 1:]).astype(np.uint8)
    name = "weight.quant_state.bitsandbytes__nf4"
    arrays[name] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    return arrays, (NF4[indexes] * largest[:, None]).reshape(w.shape)


def int8(w: np.ndarray) -> Written:
    """bitsandbytes with 8 bits."""
    largest = np.abs(w).max(1).astype(np.float32)
    q = np.rint(w * 127 / largest[:, None]).astype(np.int8)
    left = q.astype(np.float32) * largest[:, None] * np.float32(1 / 127)
    return {"weight": q, "SCB": largest, "weight_format": np.array(0, np.uint8)}, left

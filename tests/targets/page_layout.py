"""How a CPU keeps a page: keys transposed, [e, 16], in the bytes of [16, e].

With int8 a token and head have, in bytes, the upper parts [e] of a key, its lower parts [e / 2], a
float32 scale, a value [e] and a scale; with int4 (dtype uint8) a key [e], a float32 scale, a value
[e / 2], and a word for each of its groups. A CPU keeps these parts of a page's 16 tokens one after
the other, those of keys transposed.
"""

import numpy as np

from wherry.ops import page_shape, value_group

SIZE = 16  # tokens
INTEGERS = {"int8": np.dtype("int8"), "int4": np.dtype("uint8")}


def head_dim(pages):
    """Elements of a head, of pages of integers; of several sizes that fit the largest."""
    kv_dtype = next(name for name, dtype in INTEGERS.items() if dtype == pages.dtype)
    sizes = range(256, 0, -8 if kv_dtype == "int4" else -4)
    return next(e for e in sizes if page_shape(1, SIZE, e, kv_dtype)[-1] == pages.shape[-1])


def parts(pages):
    """Bytes of the parts of a token, and whether a CPU transposes them."""
    e = head_dim(pages)
    if pages.dtype == np.uint8:
        return [(e, True), (4, False), (e // 2, False), (4 * (e // value_group(e)), False)]
    return [(e, True), (e // 2, True), (4, False), (e, False), (4, False)]


def integers(pages):
    """Whether pages have integers with scales."""
    return pages.dtype in INTEGERS.values()


def stored(pages):
    """Pages by token -> as the kernels keep them."""
    if integers(pages):
        flat, first = [], 0
        for width, transposed in parts(pages):
            part = pages[..., first : first + width]
            part = np.swapaxes(part, -1, -2) if transposed else part
            flat.append(part.reshape(*pages.shape[:3], -1))
            first += width
        return np.concatenate(flat, -1).reshape(pages.shape)
    result = pages.copy()
    result[:, 0] = np.swapaxes(pages[:, 0], -1, -2).reshape(pages[:, 0].shape)
    return result


def by_token(pages):
    """The inverse of `stored`."""
    if integers(pages):
        flat, tokens, first = pages.reshape(*pages.shape[:3], -1), [], 0
        for width, transposed in parts(pages):
            part = flat[..., first : first + SIZE * width]
            shape = (width, SIZE) if transposed else (SIZE, width)
            part = part.reshape(*pages.shape[:3], *shape)
            tokens.append(np.swapaxes(part, -1, -2) if transposed else part)
            first += SIZE * width
        return np.concatenate(tokens, -1)
    result = pages.copy()
    count, _, g, size, e = pages.shape
    result[:, 0] = np.swapaxes(pages[:, 0].reshape(count, g, e, size), -1, -2)
    return result


def as_words(pages):
    """Pages of integers as GPUs read them, in words; others as they are."""
    return pages.view("uint32") if integers(pages) else pages


def as_bytes(pages, kv_dtype):
    """The inverse of `as_words`."""
    return pages.view(INTEGERS[kv_dtype]) if kv_dtype in INTEGERS else pages


def converted(pages, kv_dtype):
    """Float pages by token [P, 2, g, 16, e] -> pages of a dtype."""
    return quantized(pages, kv_dtype) if kv_dtype in INTEGERS else pages.astype(kv_dtype)


def quantized(pages, kv_dtype):
    """Float pages by token [P, 2, g, 16, e] -> integer ones, [P, 1, g, 16, bytes]."""
    if kv_dtype == "int4":
        return np.concatenate([*_eights(pages[:, 0]), *_fours(pages[:, 1])], -1)[:, None]
    scale = (np.abs(pages[:, 0]).max(-1, keepdims=True) / 2047).astype("float32")
    keys = np.rint(pages[:, 0] / scale).astype("int16")
    nibbles = (keys & 15).astype("uint8")
    lower = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
    upper = (keys >> 4).astype("uint8")
    parts = [upper, lower, scale.view("uint8"), *_eights(pages[:, 1])]
    return np.concatenate(parts, -1)[:, None].view("int8")


def _eights(x):
    """x [..., e] -> bytes of integers and of their float32 scale."""
    scale = (np.abs(x).max(-1, keepdims=True) / 127).astype("float32")
    return np.rint(x / scale).astype("int8").view("uint8"), scale.view("uint8")


def _fours(x):
    """x [..., e] -> bytes of integers 0 to 15, and of the words of scales and minimums."""
    size = value_group(x.shape[-1])
    x = x.reshape(*x.shape[:-1], -1, size)
    least = halved(np.floor, x.min(-1, keepdims=True))
    scale = halved(np.ceil, (x.max(-1, keepdims=True) - least) / 15)
    low, high = np.split(np.rint((x - least) / scale).astype("uint8"), 2, -1)
    words = least.view("uint32") | scale.view("uint32") >> 16
    flat = (*x.shape[:-2], -1)
    return (low | high << 4).reshape(flat), words.view("uint8").reshape(flat)


def halved(rounding, x):
    """x -> float32 with 8 bits of mantissa, rounded by `np.floor` or `np.ceil`."""
    fraction, exponent = np.frexp(x.astype("float64"))
    return np.ldexp(rounding(fraction * 256), exponent - 8).astype("float32")


def steps(pages):
    """Largest distances of neighbouring numbers in int pages by token, float64 [P, 2, g, 16, e]."""
    e = head_dim(pages)
    if pages.dtype == np.int8:
        ends = (e + e // 2 + 4, pages.shape[-1])
        scales = [_floats(pages[:, 0, ..., end - 4 : end]) for end in ends]
        return np.repeat(np.stack(scales, 1), e, -1)
    keys, (scale, _) = _floats(pages[:, 0, ..., e : e + 4]), _words(pages)
    return np.stack([np.repeat(keys, e, -1), np.repeat(scale, value_group(e), -1)], 1)


def _floats(bytes_):
    return np.ascontiguousarray(bytes_).view("float32").astype("float64")


def _words(pages):
    """Scales and minimums of int4 values, float64 [P, g, 16, e / group]."""
    e = head_dim(pages)
    words = np.ascontiguousarray(pages[:, 0, ..., e + 4 + e // 2 :]).view("uint32")
    return [w.view("float32").astype("float64") for w in (words << 16, words & 0xFFFF0000)]


def floats(pages):
    """Pages by token -> what they stand for, float64 [P, 2, g, 16, e]."""
    if not integers(pages):
        return pages.astype("float64")
    e, step = head_dim(pages), steps(pages)
    token = pages[:, 0].astype("int16")
    if pages.dtype == np.uint8:
        size = value_group(e)
        both = token[..., e + 4 : e + 4 + e // 2].reshape(*token.shape[:-1], -1, size // 2)
        values = np.concatenate([both & 15, both >> 4], -1).reshape(*token.shape[:-1], e)
        minimum = np.repeat(_words(pages)[1], size, -1)
        keys = pages[:, 0, ..., :e].view("int8") * step[:, 0]
        return np.stack([keys, values * step[:, 1] + minimum], 1)
    keys, nibbles = token[..., :e] * 16, token[..., e : e + e // 2] & 255
    keys[..., 0::2] += nibbles & 15
    keys[..., 1::2] += nibbles >> 4
    first = e + e // 2 + 4
    return np.stack([keys, token[..., first : first + e]], 1) * step


def tolerances(expected, kv_dtype):
    """How far what a cache keeps may be from `expected`, floats by token [P, 2, g, 16, e]."""
    if kv_dtype not in INTEGERS:
        return {"float32": 5e-6, "float16": 4e-3}[kv_dtype]
    # Half a step of an integer, and a bit where x is in the middle; a step of int4 may be rounded
    # up to the next number of 8 bits.
    bit = 1.01 if kv_dtype == "int4" else 1.001
    return steps(quantized(expected, kv_dtype)) / 2 * bit + 5e-6

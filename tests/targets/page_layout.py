"""How a CPU keeps a page: keys transposed, [e, 16], in the bytes of [16, e].

With int8 a token and head have, in bytes, the upper parts [e] of a key, its lower parts [e / 2], a
float32 scale, a value [e] and a scale; a CPU keeps these five parts of a page's 16 tokens one after
the other, those of keys transposed.
"""

import numpy as np

SIZE = 16  # tokens


def parts(width):
    """Bytes of the five parts of int8, and whether a CPU transposes them."""
    e = (width - 8) * 2 // 5
    return [(e, True), (e // 2, True), (4, False), (e, False), (4, False)]


def stored(pages):
    """Pages by token -> as the kernels keep them."""
    if pages.dtype == np.int8:
        flat, first = [], 0
        for width, transposed in parts(pages.shape[-1]):
            part = pages[..., first : first + width]
            part = np.swapaxes(part, -1, -2) if transposed else part
            flat.append(part.reshape(*pages.shape[:3], -1))
            first += width
        return np.concatenate(flat, -1).reshape(pages.shape)
    made = pages.copy()
    made[:, 0] = np.swapaxes(pages[:, 0], -1, -2).reshape(pages[:, 0].shape)
    return made


def by_token(pages):
    """The inverse of `stored`."""
    if pages.dtype == np.int8:
        flat, tokens, first = pages.reshape(*pages.shape[:3], -1), [], 0
        for width, transposed in parts(pages.shape[-1]):
            part = flat[..., first : first + SIZE * width]
            shape = (width, SIZE) if transposed else (SIZE, width)
            part = part.reshape(*pages.shape[:3], *shape)
            tokens.append(np.swapaxes(part, -1, -2) if transposed else part)
            first += SIZE * width
        return np.concatenate(tokens, -1)
    made = pages.copy()
    count, _, g, size, e = pages.shape
    made[:, 0] = np.swapaxes(pages[:, 0].reshape(count, g, e, size), -1, -2)
    return made


def quantized(pages):
    """Float pages by token [P, 2, g, 16, e] -> int8 ones, [P, 1, g, 16, 2.5 e + 8]."""
    largest = np.abs(pages).max(-1, keepdims=True)
    scale = (largest / np.array([2047, 127]).reshape(2, 1, 1, 1)).astype("float32")
    keys, values = np.moveaxis(np.rint(pages / scale).astype("int16"), 1, 0)
    nibbles = (keys & 15).astype("uint8")
    made = [
        (keys >> 4).astype("int8"),
        (nibbles[..., 0::2] | nibbles[..., 1::2] << 4).view("int8"),
        scale[:, 0].view("int8"),
        values.astype("int8"),
        scale[:, 1].view("int8"),
    ]
    return np.concatenate(made, -1)[:, None]


def scales(pages):
    """The scales of int8 pages by token, float32 [P, 2, g, 16, 1]."""
    e = parts(pages.shape[-1])[0][0]
    found = [pages[:, 0, ..., end - 4 : end] for end in (e + e // 2 + 4, pages.shape[-1])]
    return np.stack([np.ascontiguousarray(s).view("float32") for s in found], 1)


def floats(pages):
    """Pages by token -> what they stand for, float64 [P, 2, g, 16, e]."""
    if pages.dtype != np.int8:
        return pages.astype("float64")
    e = parts(pages.shape[-1])[0][0]
    token = pages[:, 0].astype("int16")
    keys, nibbles = token[..., :e] * 16, token[..., e : e + e // 2] & 255
    keys[..., 0::2] += nibbles & 15
    keys[..., 1::2] += nibbles >> 4
    first = e + e // 2 + 4
    return np.stack([keys, token[..., first : first + e]], 1) * scales(pages).astype("float64")

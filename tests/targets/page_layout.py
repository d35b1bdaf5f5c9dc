"""How a CPU keeps a page: keys transposed, [e, 16], in the bytes of [16, e].

With int8 each token has a float32 scale after its e integers: [16, e + 4] bytes by token, and a
CPU keeps the 16 scales after all the integers.
"""

import numpy as np

SCALE = 4  # bytes


def stored(pages):
    """Pages [P, 2, g, 16, e] by token -> as the kernels keep them."""
    made = pages.copy()
    if pages.dtype == np.int8:
        whole, scales = pages[..., :-SCALE].copy(), pages[..., -SCALE:]
        whole[:, 0] = np.swapaxes(whole[:, 0], -1, -2).reshape(whole[:, 0].shape)
        flat = (*pages.shape[:3], -1)
        made = np.concatenate([whole.reshape(flat), scales.reshape(flat)], -1)
        return made.reshape(pages.shape)
    made[:, 0] = np.swapaxes(pages[:, 0], -1, -2).reshape(pages[:, 0].shape)
    return made


def by_token(pages):
    """The inverse of `stored`."""
    made = pages.copy()
    count, _, g, size, e = pages.shape
    if pages.dtype == np.int8:
        e -= SCALE
        flat = pages.reshape(count, 2, g, -1)
        made[..., e:] = flat[..., size * e :].reshape(count, 2, g, size, SCALE)
        made[:, 0, ..., :e] = np.swapaxes(
            flat[:, 0, :, : size * e].reshape(count, g, e, size), -1, -2
        )
        made[:, 1, ..., :e] = flat[:, 1, :, : size * e].reshape(count, g, size, e)
        return made
    made[:, 0] = np.swapaxes(pages[:, 0].reshape(count, g, e, size), -1, -2)
    return made


def quantized(pages):
    """Float pages by token -> int8 ones, [P, 2, g, 16, e + 4]."""
    scale = (np.abs(pages).max(-1, keepdims=True) / 127).astype("float32")
    whole = np.rint(pages / scale).astype("int8")
    return np.concatenate([whole, scale.view("int8")], -1)


def floats(pages):
    """Pages by token -> what they stand for, float64 [P, 2, g, 16, e]."""
    if pages.dtype != np.int8:
        return pages.astype("float64")
    scale = np.ascontiguousarray(pages[..., -SCALE:]).view("float32")
    return pages[..., :-SCALE].astype("float64") * scale

"""How a CPU keeps a page: keys transposed, [e, 16], in the bytes of [16, e]."""

import numpy as np


def stored(pages):
    """Pages [P, 2, g, 16, e] with keys by token -> as the kernels keep them."""
    made = pages.copy()
    made[:, 0] = np.swapaxes(pages[:, 0], -1, -2).reshape(pages[:, 0].shape)
    return made


def by_token(pages):
    """The inverse of `stored`."""
    made = pages.copy()
    count, _, g, size, e = pages.shape
    made[:, 0] = np.swapaxes(pages[:, 0].reshape(count, g, e, size), -1, -2)
    return made

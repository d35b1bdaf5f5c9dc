"""The definition of `GroupQuant.encode`, one group after the other, with NumPy's scalars."""

from __future__ import annotations

import numpy as np

from wherry.quant.group import GroupQuant

F = np.float32


def encode_slowly(scheme: GroupQuant, w: np.ndarray) -> dict[str, np.ndarray]:
    """Encode w [out, in] float32."""
    rows, columns = w.shape
    groups = -(-columns // 32)
    words = np.zeros((rows, groups * 32 // scheme.per_word), np.uint32)
    scales = np.zeros((rows, groups), scheme.float_dtype)
    for o in range(rows):
        for g in range(groups):
            first = 32 * g
            own = w[o, first : first + 32]
            scale = scales[o, g] = _scale(scheme, np.pad(own, (0, 32 - len(own))))
            for i, x in enumerate(own, start=first):
                q = _rounded(scheme, x / F(scale)) if scale else F(0)
                word = int(q + scheme.zero) << (i % scheme.per_word * scheme.bits)
                words[o, i // scheme.per_word] |= np.uint32(word)
    return {"q_weight": words, "q_scale": scales}


def _scale(scheme: GroupQuant, w: np.ndarray) -> np.floating:
    """The stored scale of a group [32]."""
    largest = w[np.abs(w).argmax()]
    largest = abs(largest) if -largest in w else largest
    if abs(largest) < F(2.0**-100):
        return np.dtype(scheme.float_dtype).type(0)
    best, scale = F(0), F(0)
    for k in scheme.levels.tried:
        q = _rounded(scheme, w / largest * F(k))
        a, b = _sum(w / largest * q), _sum(q * q)
        if b > 0 and a * a / b > best:
            best, scale = a * a / b, largest * (a / b)
    with np.errstate(over="ignore"):
        return scheme.stored_scales(np.array([scale]))[0]


def _rounded(scheme: GroupQuant, x: np.ndarray | np.floating) -> np.ndarray:
    return np.minimum(np.maximum(np.rint(x), F(scheme.levels.least)), F(scheme.levels.most))


def _sum(x: np.ndarray) -> np.floating:
    """Of 32 numbers: the second half is added to the first, five times."""
    return x[0] if len(x) == 1 else _sum(x[: len(x) // 2] + x[len(x) // 2 :])

"""Unpacks the weights of all experts, or of all heads, from one checkpoint tensor.

The tensor may be transposed, or be in MXFP4; of each head, only some rows may be needed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wherry.models.weights.plan import ParameterPlan
from wherry.models.weights.rules import Heads

from .tensors import Checkpoint

# The magnitudes of E2M1: a sign bit, which `FP4` adds, two exponent bits and one mantissa bit.
_VALUES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], np.float32)
FP4 = np.concatenate([_VALUES, -_VALUES])
_BIAS = 127  # exponent bias of an E8M0 scale, in which 255 means NaN


def experts(
    plan: ParameterPlan, checkpoint: Checkpoint
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield (index of the first row, rows float32) of a parameter, an expert or head at a time.

    The parameter's plan has `unpacked`; row indexes count along the first axis of `plan.rows`.
    """
    assert plan.unpacked is not None
    if isinstance(plan.unpacked, Heads):
        yield from _heads(plan, plan.unpacked, checkpoint)
        return
    names = [piece.name for piece in plan.pieces]
    order = np.arange(plan.shape[1])
    if plan.unpacked.interleaved:
        order = np.concatenate([order[0::2], order[1::2]])
    if len(plan.shape) == 2:  # biases [experts, rows]
        yield 0, np.ascontiguousarray(checkpoint.read(names[0])[:, order])
        return
    count, rows, columns = plan.shape
    for e in range(count):
        if len(names) == 1:
            weight = checkpoint.read(names[0], e, e + 1)[0].T
        else:
            blocks, scales = (checkpoint.read_raw(name, e, e + 1)[0] for name in names)
            weight = mxfp4(blocks, scales)[:, :columns]
        yield e * rows, np.ascontiguousarray(weight[order])


def _heads(
    plan: ParameterPlan, word: Heads, checkpoint: Checkpoint
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield (index of the first row, rows float32) of the parameter's part of each head."""
    first, stop, size = plan.rows_of_head
    for head in range(plan.shape[0]):
        rows = checkpoint.read(plan.pieces[0].name, head * size + first, head * size + stop)
        yield head * plan.shape[1], np.ascontiguousarray(rows.T if word.transposed else rows)


def mxfp4(blocks: NDArray[np.uint8], scales: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Decode MXFP4: blocks [..., groups, 16] and scales [..., groups] -> [..., groups * 32].

    `Unpack` describes the layout. The result is exact; a NaN scale results in NaN weights.
    """
    pairs = np.stack([FP4[blocks & 15], FP4[blocks >> 4]], -1)  # [..., groups, 16, 2]
    exponents = np.where(scales == 255, 0, scales.astype(np.int32) - _BIAS)
    weights: NDArray[np.float32] = np.ldexp(
        pairs.reshape(*scales.shape, 32), exponents[..., None]
    ).astype(np.float32, copy=False)
    weights[scales == 255] = np.nan
    return weights.reshape(*scales.shape[:-1], -1)

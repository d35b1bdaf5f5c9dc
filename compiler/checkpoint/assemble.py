"""Assembles parameters from a checkpoint's tensors, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from wherry.models.weights.plan import ParameterPlan, rows_of

from .tensors import Checkpoint, widen
from .unpack import experts

_PLACES = 8  # of a parameter from which `some_rows` reads
BLOCK_BYTES = 8 << 20  # approximate size of a block of rows in float32, bytes


def blocks(
    plan: ParameterPlan, checkpoint: Checkpoint
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the blocks of rows of one parameter as (index of the first row, rows float32).

    Row indexes count along the first axis of `plan.rows`. A scalar or constant is one block.
    """
    if plan.constant is not None:
        yield 0, np.full(plan.shape, plan.constant, np.float32)
        return
    if not plan.shape:
        yield 0, checkpoint.read(plan.pieces[0].name)
        return
    step = max(1, BLOCK_BYTES // max(1, 4 * prod(plan.rows[1:])))
    if plan.unpacked:
        yield from experts(plan, checkpoint)
        return
    if plan.transpose:
        yield from _transposed(plan, checkpoint, step)
        return
    for start in range(0, plan.rows[0], step):
        stop = min(start + step, plan.rows[0])
        read = _stacked if plan.axis == 0 else _side_by_side
        rows = read(plan, checkpoint, start, stop)
        yield start, _unit(rows) if plan.unit_rows else rows


def some_rows(
    plan: ParameterPlan, checkpoint: Checkpoint, count: int, within: tuple[int, int] | None = None
) -> NDArray[np.float32]:
    """Read about `count` rows of a matrix or of experts, spread over it: [n, columns].

    Where the file does not have rows one after another, they are those of the first block.

    Args:
        plan: the parameter.
        checkpoint: the source of its weights.
        count: number of rows.
        within: first and last row (exclusive) of those that count; None: all.
    """
    if plan.constant is not None or plan.unpacked or plan.transpose:
        rows = next(iter(blocks(plan, checkpoint)))[1]
        rows = rows.reshape(-1, rows.shape[-1])
        return np.ascontiguousarray(rows[:: max(1, len(rows) // count)][:count])
    low, high = within or (0, plan.rows[0])
    read = _stacked if plan.axis == 0 else _side_by_side
    each = min(high - low, max(1, count // _PLACES))
    starts = sorted({low + i * (high - low - each) // (_PLACES - 1) for i in range(_PLACES)})
    parts = [read(plan, checkpoint, start, start + each) for start in starts]
    rows = np.concatenate(parts).reshape(-1, plan.shape[-1])
    return _unit(rows) if plan.unit_rows else rows


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Divide each row [..., n] by its Euclidean norm; rows of zeros remain zeros."""
    lengths = np.sqrt((rows.astype(np.float64) ** 2).sum(-1, keepdims=True))
    unit: NDArray[np.float32] = (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit


def _transposed(
    plan: ParameterPlan, checkpoint: Checkpoint, step: int
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield the blocks of rows of a parameter whose tensor in the file is [in, out].

    The whole tensor is read at once, in the file's dtype.
    """
    name = plan.pieces[0].name
    raw = checkpoint.read_raw(name)
    for start in range(0, plan.shape[0], step):
        columns = np.ascontiguousarray(raw[:, start : start + step].T)
        yield start, widen(columns, checkpoint.tensors[name].dtype)


def _stacked(
    plan: ParameterPlan, checkpoint: Checkpoint, start: int, stop: int
) -> NDArray[np.float32]:
    """Read rows [start, stop) of a parameter whose pieces follow each other along axis 0."""
    if plan.frames > 1:
        frames = [checkpoint.read(piece.name, start, stop) for piece in plan.pieces]
        total = frames[0].sum(2) if len(frames) == 1 else np.sum(frames, axis=0)
        return np.ascontiguousarray(total.reshape(-1, *plan.rows[1:]), np.float32)
    parts = [
        checkpoint.read(plan.pieces[i].name, rows.start, rows.stop)[rows.selected]
        for i, rows in rows_of(plan.pieces, start, stop)
    ]
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return joined.reshape(-1, *plan.rows[1:])  # a convolution of patches has more axes


def _side_by_side(
    plan: ParameterPlan, checkpoint: Checkpoint, start: int, stop: int
) -> NDArray[np.float32]:
    """Read rows [start, stop) of a parameter whose pieces follow each other along a later axis."""
    parts = []
    for piece in plan.pieces:
        cut = (slice(None),) * plan.axis + (slice(piece.start, piece.stop),)
        parts.append(checkpoint.read(piece.name, start, stop)[cut])
    return np.ascontiguousarray(np.concatenate(parts, axis=plan.axis))

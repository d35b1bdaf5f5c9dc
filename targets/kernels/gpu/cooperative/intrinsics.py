"""Intrinsics on the tile of sums that the threads of a block share.

Every thread of the block must reach these statements, and they need barriers around them. They call
functions that no device has; `targets/spirv/matrices.py` replaces the calls.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

ROWS = COLUMNS = 64  # rows and columns of a tile
THREADS = 128  # threads of a block
BEGIN, MULTIPLY, STORE = "matrices_begin", "matrices_multiply", "matrices_store"


def begin(thread: Any) -> None:
    """Emit sums float32 [ROWS, COLUMNS] of zeros, once at the beginning of the kernel."""
    T.evaluate(T.call_extern("void", BEGIN, thread))


def multiply(thread: Any, x: Any, w: Any, stride: int, count: int) -> None:
    """Emit sums[r, c] += x[r, 0] w[c, 0] + ... + x[r, count - 1] w[c, count - 1].

    Args:
        thread: index of the thread in the block.
        x: float16 [ROWS, stride] in shared memory.
        w: float16 [COLUMNS, stride] in shared memory.
        stride: a multiple of 8, because a device loads 16 bytes at a time.
        count: a multiple of 16.
    """
    assert stride % 8 == 0 and count % 16 == 0, (stride, count)
    places = (buffer.access_ptr("r") for buffer in (x, w))
    T.evaluate(T.call_extern("void", MULTIPLY, thread, *places, stride, count))


def store(thread: Any, into: Any, stride: int) -> None:
    """Emit into[r, c] = sums[r, c], float32 [ROWS, stride] in shared memory.

    `stride` must be a multiple of 4, because a device stores 16 bytes at a time.
    """
    assert stride % 4 == 0, stride
    T.evaluate(T.call_extern("void", STORE, thread, into.access_ptr("w"), stride))

"""Divides rows and columns of CPU kernels into tiles.

Every tile height runs the same operations on a row, in the same order, so a row's bits do not
depend on its tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from . import vector as v

PANEL = 16  # output columns of a weight panel
# Bytes of weights that justify several threads: a launch of the thread pool costs 1.2 us, and a
# core reads about 10 GB/s, so with fewer bytes (13 us) one thread is as fast.
PARALLEL_BYTES = 128 * 1024
PARALLEL_ELEMENTS = 200_000  # elements of element-wise work that justify several threads: 20 us


def panels(columns: int) -> int:
    """Return the number of panels that hold `columns` columns; the last may be partly empty."""
    return -(-columns // PANEL)


def over_rows(rows: Any, heights: tuple[int, ...], tile: Callable[[int, Any], None]) -> None:
    """Emit loops over `rows` rows: as many tiles of the first height as fit, then of the next.

    `heights` descend, each divides the one before, and the last is 1. `tile(height, first_row)`
    emits a tile.
    """
    done: Any = T.int64(0)
    for index, height in enumerate(heights):
        count = rows // height if index == 0 else (rows % heights[index - 1]) // height
        with T.serial(count) as i:
            tile(height, done + i * height)
        done = rows // height * height


def each_row(rows: Any, row_cost: int, emit: Callable[[Any], None]) -> None:
    """Emit `emit(row)` for all rows, with all threads if the work is worth a launch.

    `row_cost` estimates the work of a row, in elements read by a simple loop (about 0.1 ns each).
    """

    def loop(kind: Any) -> None:
        with kind(rows) as row, T.sblock("row"):
            T.reads()
            T.writes()
            emit(row)

    with T.If(rows > PARALLEL_ELEMENTS // row_cost):
        with T.Then():
            loop(T.parallel)
        with T.Else():
            loop(T.serial)


def store_panel(y: Any, row: Any, panel: Any, columns: int, value: Any) -> None:
    """Emit y[row, 16 * panel : 16 * panel + 16] = value, up to column `columns`."""
    first = panel * PANEL
    with T.If(first + PANEL <= columns):
        with T.Then():
            T.buffer_store(y, value, [row, v.span(first, PANEL)])
        if columns % PANEL == 0:
            return
        with T.Else(), T.sblock("tail"):
            T.reads()
            T.writes()
            part = T.sblock_alloc_buffer((PANEL,), "float32")
            T.buffer_store(part, value, [v.span(0, PANEL)])
            # The extent is 0 if the whole panel is padding: the loop has no iteration.
            with T.serial(T.max(T.int64(columns) - first, 0)) as i:
                T.buffer_store(y, part[i], [row, first + i])

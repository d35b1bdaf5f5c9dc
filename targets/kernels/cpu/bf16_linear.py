"""Chooses between products in bfloat16 and other kernels of a linear, by the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from .bf16_tiles import BLOCK, TOGETHER, WIDTH, Bf16Rows, Strip, Unpack
from .epilogue import Finish
from .tiles import each_row, panels, store_panel

LEAST = BLOCK  # rows that pay for the dequantization of the weights


def bf16_or(
    b: dict[str, Any], unpack: Unpack, finish: Finish, loop: Any, others: Callable[[], None]
) -> None:
    """Emit a linear of the buffers x and y in bfloat16, or `others` if the rows are few."""
    with T.If(b["x"].shape[0] >= LEAST):
        with T.Then(), T.sblock("bf16"):
            T.reads()
            T.writes()
            _linear(b["x"], b["y"], unpack, finish, loop)
        with T.Else(), T.sblock("others"):
            T.reads()
            T.writes()
            others()


def _linear(X: Any, Y: Any, unpack: Unpack, finish: Finish, loop: Any) -> None:
    m, k, columns = X.shape[0], int(X.shape[1]), int(Y.shape[1])
    count = panels(columns)
    rows = Bf16Rows.of(T.ceildiv(m, BLOCK), k)
    each_row(m, k, lambda row: rows.store_row(lambda at: X[row, at], k, row))
    with loop(-(-count // WIDTH)) as strip, T.sblock("strip"):
        T.reads()
        T.writes()
        first, blocks = strip * WIDTH, rows.blocks
        own = Strip.of(min(WIDTH, count + count % 2), rows.groups, T.min(blocks, TOGETHER))
        with T.serial(T.ceildiv(blocks, TOGETHER)) as some, T.sblock("blocks"):
            T.reads()
            T.writes()
            begin = some * TOGETHER
            # the last panel stands for those beyond it, of which nothing is stored
            own.multiply(
                rows,
                begin,
                T.min(blocks - begin, TOGETHER),
                lambda p, g, store: unpack(T.min(first + p, count - 1), g, store),
            )
            here = T.min(m - begin * BLOCK, TOGETHER * BLOCK)
            with T.serial(here) as i, T.serial(own.panels) as p, T.sblock("store"):
                T.reads()
                T.writes()
                value = finish(first + p, own.sum(i, p))
                store_panel(Y, begin * BLOCK + i, first + p, columns, value)

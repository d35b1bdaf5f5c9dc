"""Chooses between products in bfloat16 and other kernels of a linear, by the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.script import tirx as T

from .bf16_tiles import BLOCK, Bf16Rows, Unpack, multiply
from .epilogue import Finish
from .tiles import each_row, panels, store_panel

LEAST = BLOCK  # rows that pay for the dequantization of the weights


def bf16_or(
    b: dict[str, Any], unpack: Unpack, finish: Finish, loop: Any, others: Callable[[], None]
) -> None:
    """Emit a linear of the buffers x and y in bfloat16, or `others` if the rows are few."""
    X, Y = b["x"], b["y"]
    m, k, columns = X.shape[0], int(X.shape[1]), int(Y.shape[1])

    def store(row: Any, p: Any, sums: Any) -> None:
        store_panel(Y, row, p, columns, finish(p, sums))

    with T.If(m >= LEAST):
        with T.Then(), T.sblock("bf16"):
            T.reads()
            T.writes()
            rows = Bf16Rows.of(m, k)
            each_row(m, k, lambda row: rows.store_row(X, row))
            multiply(rows, panels(columns), unpack, store, loop)
        with T.Else(), T.sblock("others"):
            T.reads()
            T.writes()
            others()

"""Lays out tables for the terminal: each column as wide as its longest cell."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def lines(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """Yield a line per row.

    Args:
        rows: the cells, of equal number in each row; the first row may have the titles.
        right: indices of columns that are aligned at the right, as numbers are.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()

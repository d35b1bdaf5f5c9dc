"""Rows as a Markdown table: `python -m benchmarks.table [FOLDER]`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .rows import ROWS, read_rows

COLUMNS = (
    "date", "commit", "shape", "workload", "threads", "Wherry tok/s (CPU s)", "peer tok/s (CPU s)",
    "ratio wall", "ratio CPU", "share of bandwidth (by CPU time)",
)  # fmt: skip


def line(row: dict[str, Any]) -> list[str]:
    """The cells of a row."""

    def speed(side: dict[str, Any]) -> str:
        return f"{side['tokens_per_s']:.0f} ({side['tokens_per_cpu_s']:.0f})"

    ours = row["wherry"]
    share = "-"
    if "bandwidth_share" in ours:
        by_cpu = ours["bandwidth_share_of_cpu_time"]
        share = f"{ours['bandwidth_share']:.0%} ({by_cpu:.0%})"
    return [
        row["date"][:16] + (" (busy)" if row.get("warning") else ""),
        row["versions"]["commit"],
        f"{row['shape']} {row['quant']}",
        row["what"],
        str(row["threads"]),
        speed(ours),
        speed(row["llama.cpp"]),
        f"{row['ratio_wall']:.2f}",
        f"{row['ratio_cpu']:.2f}",
        share,
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown of all rows."""
    cells = [list(COLUMNS), ["---"] * len(COLUMNS), *map(line, rows)]
    return "\n".join(f"| {' | '.join(c)} |" for c in cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Rows as a Markdown table.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROWS)
    print(table(read_rows(parser.parse_args().folder)))


if __name__ == "__main__":
    main()

"""The progress of long operations: libraries call a callback, which bars at a terminal draw."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

Progress = Callable[[str, int, int], None]
"""Arguments: operation ("download" or "convert"), bytes done, bytes in total; it must not raise."""

_LABELS = {
    "prepare": "Preparing",
    "download": "Downloading",
    "calibrate": "Calibrating",
    "convert": "Converting weights",
    "compile": "Compiling",
    "warm up": "Warming up",
    "bench": "Measuring",
    "measure": "Measuring quality",
}


@contextmanager
def shown() -> Iterator[Progress]:
    """Yield a callback that shows progress until the context ends, to a person.

    At a terminal it draws bars on stderr, in a notebook it writes a line for each operation, and
    elsewhere nothing.
    """
    from rich.console import Console  # slow, and of no use to an error in the command line
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if "ipykernel" in sys.modules:
        yield _lines()
        return
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=32),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(_LABELS.get(what, what), total=total)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield report


def _lines() -> Progress:
    """Return a callback that writes a line when an operation begins."""
    begun: set[str] = set()

    def report(what: str, done: int, total: int) -> None:
        if what not in begun:
            begun.add(what)
            print(f"{_LABELS.get(what, what)} ...", file=sys.stderr, flush=True)

    return report

"""Shows progress on stderr: bars on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_LABELS = {
    "download": "Downloading",
    "calibrate": "Calibrating",
    "convert": "Converting weights",
    "compile": "Compiling",
    "load": "Loading",
    "warm up": "Warming up",
    "bench": "Measuring",
    "measure": "Measuring quality",
}


@contextmanager
def shown() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback (phase, done, total) that shows progress bars until the context ends."""
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

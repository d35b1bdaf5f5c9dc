"""The progress callback of long operations: libraries call it, the command line draws it."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Arguments: operation ("download" or "convert"), bytes done, bytes in total; it must not raise."""

"""The progress callback of long work: libraries call it, the command line draws it."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with (what: "download" or "convert", bytes done, bytes in all); must not raise."""

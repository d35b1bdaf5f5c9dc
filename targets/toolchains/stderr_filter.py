"""Filters warnings that TVM writes to the process's stderr."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_lines(pattern: str) -> Iterator[None]:
    """Context that drops lines matching `pattern` from stderr.

    It replaces the file descriptor of the whole process, because C++ code writes the lines.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    thread = threading.Thread(target=_pass_on, args=(source, kept, re.compile(pattern.encode())))
    thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)  # closes the pipe's write end, so the thread ends
        thread.join()
        os.close(source)
        os.close(kept)


def _pass_on(source: int, kept: int, pattern: re.Pattern[bytes]) -> None:
    rest = b""
    while piece := os.read(source, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not pattern.search(line):
                os.write(kept, line + b"\n")
        # not a TVM log line, so write it at once: progress bars must not wait
        if rest and not rest.startswith(b"["):
            os.write(kept, rest)
            rest = b""
    if rest and not pattern.search(rest):
        os.write(kept, rest)

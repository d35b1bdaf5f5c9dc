"""Makes Ctrl-C end the program at once, with one line and exit code 130.

Python runs a signal's handler when the main thread is back in Python code, which takes seconds
inside of a compiler. So a separate thread waits for the signal and ends the process: files are
written under temporary names, and unfinished folders are removed first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType

from wherry.base import temporary

INTERRUPTED = 130  # exit code as in shells: 128 + SIGINT
# terminal codes that clear the line and show the cursor that a bar hides
_UNDO_BAR = "\r\x1b[2K\x1b[?25h"
_STDERR = 2
_leaving = threading.Lock()


def exit_at_once() -> None:
    """Let Ctrl-C end the process from now on, until another handler is set.

    A process that was started with SIGINT ignored continues to ignore it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), name="wherry-ctrl-c", daemon=True).start()
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _leave)


def raise_instead() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, which ends an answer but not the chat.

    There is no way back: `_watch` might see a late signal afterwards.
    """
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _watch(reader: socket.socket) -> None:
    while numbers := reader.recv(64):  # the signal's wakeup pipe delivers a byte per signal
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is _leave:
            _leave(signal.SIGINT, None)


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process, without waiting for threads, destructors or buffers.

    If two threads call this, the second one waits for the first to end the process.
    """
    with _leaving:
        line = "Interrupted.\n"
        with contextlib.suppress(OSError):  # stderr may already be closed
            os.write(_STDERR, (_UNDO_BAR + line if os.isatty(_STDERR) else line).encode())
        temporary.remove_all()
        os._exit(INTERRUPTED)

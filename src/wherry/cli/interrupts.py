"""Ctrl-C ends the program at once, with one line and exit code 130, whatever is under way.

Python runs a signal's handler when the main thread comes back to Python code, which takes seconds
inside of a compiler. So a thread of our own waits for the signal and ends the process: every file
is written under a temporary name, and folders under way are removed first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from types import FrameType

from wherry import temporary

INTERRUPTED = 130  # exit code, as shells have it: 128 + SIGINT
_UNDO_BAR = "\r\x1b[2K\x1b[?25h"  # clears the line, and shows the cursor that a bar hides
_STDERR = 2
_leaving = threading.Lock()


def exit_at_once() -> None:
    """From now on, until somebody else handles SIGINT, Ctrl-C ends the process.

    A process that was started with SIGINT ignored goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    threading.Thread(target=_watch, args=(reader,), name="wherry-ctrl-c", daemon=True).start()
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _leave)


def raise_instead() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt: a chat's answer ends, not the chat.

    There is no way back: `_watch` might see a signal of this time when that time is over.
    """
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _watch(reader: socket.socket) -> None:
    while numbers := reader.recv(64):  # a byte for each signal that came
        if signal.SIGINT in numbers and signal.getsignal(signal.SIGINT) is _leave:
            _leave(signal.SIGINT, None)


def _leave(number: int, frame: FrameType | None) -> None:
    """End the process, without waiting for threads, destructors or buffers.

    Of the two threads that come here, the second waits for the first to end the process.
    """
    with _leaving:
        line = "Interrupted.\n"
        with contextlib.suppress(OSError):  # stderr may be closed
            os.write(_STDERR, (_UNDO_BAR + line if os.isatty(_STDERR) else line).encode())
        temporary.remove_all()
        os._exit(INTERRUPTED)

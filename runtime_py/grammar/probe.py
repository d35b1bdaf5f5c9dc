"""Tries each new grammar in a process of its own, because a bad one may kill its process.

A short text can make a compiler take minutes, gigabytes, or more stack than exists, and a signal in
a library's thread ends the whole process. So this process first compiles each new grammar over a
vocabulary of single bytes, under limits of CPU time and memory, and walks some tokens.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

CPU_SECONDS = 5.0  # seconds of CPU time to compile one grammar
WALL_SECONDS = 30.0  # seconds of wall time to compile one grammar on a busy machine
MEMORY = 2 * 2**30  # bytes of address space that the process may allocate after its start
# seconds of CPU time to compute one token's mask, for which the engine's thread waits
STEP_SECONDS = 0.1
STEPS = 24  # number of tokens that the probe generates from the grammar
_KILLED = (-9, 1)  # exit codes of a process after `Popen.kill` on POSIX and on Windows
_NICE = 5  # running requests have the CPU before a new grammar
STACK = 8 * 2**20  # bytes of stack; compiler.py compiles with four times as much


class Refused(ValueError):
    """A grammar that cannot be compiled, or is too expensive."""


class Probe:
    """Runs the probe process, which tries one grammar at a time and is restarted if it has died.

    Args:
        core: path of libwherry.
        library: path of llguidance's library.
    """

    def __init__(self, core: Path, library: Path) -> None:
        self._paths = (str(core), str(library))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, kind: str, text: str, seconds: float = WALL_SECONDS) -> None:
        """Check that a grammar compiles in reasonable time; blocks until the probe has answered.

        Raises:
            Refused: the compiler's reason, or the exceeded limit.
            TimeoutError: earlier grammars took `seconds`, or this grammar did, perhaps because the
                machine is busy.
        """
        if not self._lock.acquire(timeout=seconds):
            raise TimeoutError
        try:
            reason = self._ask(json.dumps([kind, text]).encode() + b"\n", seconds)
        except BaseException:
            self._kill()
            raise
        finally:
            self._lock.release()
        if reason:
            raise Refused(reason)

    def _ask(self, line: bytes, seconds: float) -> str:
        """Send a line to the process; return the reason of a refusal, or an empty text."""
        process = self._process
        if process is None or process.poll() is not None:
            self._kill()
            process = self._start()
        assert process.stdin is not None and process.stdout is not None
        watch = threading.Timer(seconds, process.kill)
        watch.daemon = True
        watch.start()
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            watch.cancel()
        if answer:
            return str(json.loads(answer))
        self._kill()
        if process.returncode in _KILLED:
            raise TimeoutError
        return _death(process.returncode)

    def _start(self) -> subprocess.Popen[bytes]:
        import wherry

        root = Path(wherry.__file__).parent.parent
        program = (
            f"import sys; sys.path.insert(0, {str(root)!r}); "
            f"from {__name__} import main; main(*sys.argv[1:])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *self._paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must interrupt only the server, not the probe
        )
        return self._process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def close(self) -> None:
        """End the probe process and a running check; idempotent."""
        if (process := self._process) is not None:
            process.kill()
        with self._lock:
            self._kill()


def _death(code: int | None) -> str:
    time_out = getattr(signal, "SIGPROF", None)
    if code is not None and time_out is not None and code == -time_out:
        return f"it takes more than {CPU_SECONDS:g} s to compile"
    return "it is nested too deeply, or takes too much memory"


# The code below runs in the probe process.


def main(core: str, library: str) -> None:
    """Read lines [kind, text] until the input ends; answer each with a refusal's reason, or ""."""
    if hasattr(os, "nice"):
        os.nice(_NICE)
    threading.stack_size(STACK)
    worker = threading.Thread(target=_serve, args=(core, library))
    worker.start()
    worker.join()


def _serve(core: str, library: str) -> None:
    from wherry.machine.plugins import open_library
    from wherry.machine.tvm_runtime import open_runtime

    from ..core.native import bind
    from .native import Vocabulary

    open_runtime("cpu")
    tokens = [bytes([b]) for b in range(256)] + [b"\xff<|end|>"]
    vocabulary = Vocabulary(bind(open_library(Path(core))), Path(library), tokens)
    _limit_memory()
    source: IO[bytes] = sys.stdin.buffer
    for line in source:
        kind, text = json.loads(line)
        _arm(CPU_SECONDS)
        reason = _try(vocabulary, kind, text)
        _arm(0)
        sys.stdout.write(json.dumps(reason) + "\n")
        sys.stdout.flush()


def _arm(seconds: float) -> None:
    """Limit the CPU time by a signal's default action, which library code cannot delay."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _limit_memory() -> None:
    try:
        import resource
    # the `resource` module is missing on Windows, where only the limit of wall time remains
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    statm = Path("/proc/self/statm")
    if not statm.is_file():  # macOS has no /proc and does not limit address space
        return
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _try(vocabulary: Any, kind: str, text: str) -> str:
    from wherry.errors import WherryError

    from .native import Walk

    end = 256
    choose = random.Random(0)
    try:
        walk = Walk(vocabulary.compile(kind, text).mask([end]), end + 1)
        for _ in range(STEPS):
            before = time.process_time()
            allowed = walk.allowed()
            complete = allowed[0] == end or walk.accept(choose.choice(_texts(allowed, end)))
            spent = time.process_time() - before
            if spent > STEP_SECONDS:
                return f"a token of it takes {spent:.1f} s; accepted are {STEP_SECONDS:g} s"
            if complete:
                break
    except WherryError as e:
        return str(e)
    return ""


def _texts(allowed: list[int], end: int) -> list[int]:
    return [t for t in allowed if t != end]

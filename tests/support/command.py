"""Runs `wherry` as a person does, in a process of its own, or here."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from wherry.cli.group import run

from .waiting import until

SRC = Path(__file__).parents[2] / "src"


def environment(**changes: str) -> dict[str, str]:
    """This process's environment (with the session's cache), and this tree."""
    return {**os.environ, "PYTHONPATH": str(SRC), **changes}


def wherry(*arguments: str, stdin: str = "", timeout: float = 300, **env: str):
    """Run it to its end; the finished process with text in stdout and stderr."""
    return subprocess.run(
        [sys.executable, "-m", "wherry", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment(**env),
        check=False,
    )


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in this process, for tests of what it says: the imports of a new one take seconds."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        patch.object(sys, "argv", ["wherry", *arguments]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as e:
            code = e.code
    assert isinstance(code, int), code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def python(script: str, *arguments: str, **env: str) -> str:
    """Run a script in a process of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment(**env),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def started(
    *arguments: str,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    **env: str,
) -> subprocess.Popen[bytes]:
    """Begin it as a terminal does: a group of processes of its own, that hears Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "wherry", *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment(**env),
        start_new_session=True,
        # A process that a script starts in the background ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for(process: subprocess.Popen[bytes], happened: Callable[[], object]) -> None:
    """Wait until the process has come to a place."""
    until(happened, alive=lambda: process.poll() is None)


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """What it has used so far, all threads."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

"""Runs `wherry` as a person does: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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

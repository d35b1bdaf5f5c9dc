"""The npm package in tests: its compiler's and its tests' programs, and a site that is served."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..support import command
from ..support.web import missing

WEB = Path(__file__).parents[2] / "web"


def need_packages() -> None:
    """Skip, or fail where they have to be here."""
    if shutil.which("node") is None:
        missing("no node: apt-get install nodejs npm")
    if not (WEB / "node_modules").is_dir():
        missing("no packages: npm ci --prefix web")


def run(*command: str, cwd: Path = WEB, timeout: float = 600, **env: str) -> str:
    """Run a program to its end; what it printed."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, (
        f"{' '.join(command)}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    )
    return done.stdout


def tool(name: str) -> str:
    """A program of the package's development."""
    return str(WEB / "node_modules" / ".bin" / name)


@contextmanager
def served(place: Path) -> Iterator[str]:
    """`wherry web` on a free port; its address."""
    process = command.started("web", str(place), "--port", "0")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        assert address.startswith("http://"), process.communicate(timeout=20)
        yield address
    finally:
        command.interrupt(process)
        process.communicate(timeout=20)

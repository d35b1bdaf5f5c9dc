"""The npm package in tests: its compiler's and its tests' programs, and a site that is served."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ..support import command
from ..support.web import missing, require_node

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
SHOTS = ROOT / "build" / "screenshots"  # of the page; kept


def need_packages() -> None:
    """Skip, or fail where they have to be here."""
    require_node()
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


def compiled() -> Path:
    """web/build: the package and its tests as JavaScript; made once for all processes."""
    output = WEB / "build"
    stamp = output / ".made-of"
    tops = ("src", "demo", "markdown", "test")
    sources = [f for top in tops for f in sorted((WEB / top).rglob("*.ts"))]
    states = [(str(f), f.stat().st_mtime_ns, f.stat().st_size) for f in sources]
    now = hashlib.sha256(json.dumps(states).encode()).hexdigest()
    output.mkdir(exist_ok=True)
    with FileLock(output.with_suffix(".lock")):
        stale = not stamp.is_file() or stamp.read_text() != now
        for old in output.iterdir() if stale else ():  # of sources that are gone, too
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        run("node", "scripts/programs.js")
        if stale:
            run(tool("tsc"), "--noEmit", "false", "--outDir", "build", "--sourceMap")
            stamp.write_text(now)
    return output


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

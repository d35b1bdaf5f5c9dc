"""Finishes what the build backend wrote: tag, bill of materials, the same bytes each time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .bill import write_bill
from .machines import Machine
from .sources import ROOT, Part

LIBRARIES = (".so", ".dylib", ".dll")


def commit_time() -> int:
    """Return SOURCE_DATE_EPOCH, or the time of the commit, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return int(done.stdout)


def set_tag(folder: Path, platform: str) -> None:
    """Replace the platform in an unpacked wheel's tags: `Tag: py3-none-PLATFORM`."""
    (file,) = folder.glob("*.dist-info/WHEEL")
    text, count = re.subn(
        r"^Tag: py3-none-\S+$", f"Tag: py3-none-{platform}", file.read_text(), flags=re.M
    )
    if count != 1:
        raise SystemExit(f"{file} has {count} tags py3-none-...; one is expected:\n{text}")
    file.write_text(text)


def set_modes(folder: Path) -> None:
    """Give files the same modes under any umask: 755 for folders and libraries, else 644."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.suffix in LIBRARIES else 0o644)


def finish(
    wheel: Path,
    machine: Machine,
    parts: list[Part],
    browser: Path | None,
    work: Path,
    out: Path,
) -> Path:
    """Write the finished wheel into `out`; return it.

    Args:
        wheel: the build backend's.
        machine: what it was built for.
        parts: what is inside of others.
        browser: the build that the core for browsers came from, if it is inside.
        work: a folder for the unpacked wheel, emptied first.
        out: the folder of the finished wheel.
    """
    when = commit_time()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(when)}
    shutil.rmtree(work, ignore_errors=True)
    tool = [sys.executable, "-m", "wheel"]
    subprocess.run([*tool, "unpack", "--dest", work, wheel], check=True, stdout=subprocess.DEVNULL)
    (folder,) = work.iterdir()
    set_tag(folder, machine.platform)
    write_bill(folder, parts, browser, when)
    set_modes(folder)
    wheel_file = out / f"{folder.name}-py3-none-{machine.platform}.whl"
    subprocess.run(
        [*tool, "pack", "--dest-dir", out, folder],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    return wheel_file

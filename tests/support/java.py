"""Where this machine's Java is."""

from __future__ import annotations

import shutil
from pathlib import Path


def jdk() -> Path:
    """The folder of Java's development kit, with include/ and lib/."""
    return Path(shutil.which("javac") or "").resolve().parents[1]

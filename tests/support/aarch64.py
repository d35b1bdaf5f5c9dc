"""The cross compiler and the emulator of 64-bit Arm that tests run."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def lacking(what: str) -> NoReturn:
    """Skip on a person's machine; in CI, where it is to be installed, fail."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def require_tools() -> None:
    """Skip without the compiler or the emulator; fail in CI."""
    missing = [t for t in ("aarch64-linux-gnu-g++", "qemu-aarch64") if shutil.which(t) is None]
    if missing:
        lacking(f"no {' and no '.join(missing)}: apt install g++-aarch64-linux-gnu qemu-user")

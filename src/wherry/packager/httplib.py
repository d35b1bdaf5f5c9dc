"""Finds cpp-httplib, the header library that `wherry-lite serve` is compiled with."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from wherry import tools
from wherry.base import settings
from wherry.targets.toolchains.toolchain import Requirement

VERSION = tools.HTTPLIB  # oldest accepted version; cmake/httplib.cmake repeats it
_SAYS = re.compile(r'^#define CPPHTTPLIB_VERSION "([\d.]+)"', re.MULTILINE)


def requirement() -> Requirement:
    """Return cpp-httplib as a requirement: its folder, or how to install it."""
    folder = settings.toolchain_dir() / "httplib"
    usable = next((str(place) for place in _places(folder) if _is_new(place)), None)
    return Requirement(
        name=f"cpp-httplib {VERSION}", installed=usable, fix=tools.command("httplib")
    )


def _places(folder: Path) -> Iterator[Path]:
    yield folder
    for root in (sys.prefix, "/opt/homebrew", "/usr/local", "/usr"):
        yield Path(root) / "include"


def _is_new(folder: Path) -> bool:
    header = folder / "httplib.h"
    if not header.is_file():
        return False
    said = _SAYS.search(header.read_text(encoding="utf-8", errors="replace"))
    return said is not None and _numbers(said[1]) >= _numbers(VERSION)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]

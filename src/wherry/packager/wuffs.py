"""Finds wuffs, which apps decode images with; its source is compiled for models that see."""

from __future__ import annotations

from wherry import tools
from wherry.base import settings
from wherry.targets.toolchains.toolchain import Requirement

VERSION = tools.TOOLS["wuffs"].requirement  # where the source comes from
_SOURCE = "wuffs-unsupported-snapshot.c"


def requirement() -> Requirement:
    """Return wuffs's source as a requirement: its folder, or how to install it."""
    folder = settings.toolchain_dir() / "wuffs"
    installed = str(folder) if (folder / _SOURCE).is_file() else None
    return Requirement(name="wuffs", installed=installed, fix=tools.command("wuffs"))

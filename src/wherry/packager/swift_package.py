"""Writes the Swift package of an app for Apple's systems: sources next to the .xcframework."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import sources

_MANIFEST = "Package.swift"
_FOLDERS = ("Sources", "Tests", "Linux")


def write_package(folder: Path) -> None:
    """Write the Swift package into `folder`, which has, or will have, its .xcframework."""
    source = sources.root() / "mobile" / "ios"
    shutil.copyfile(source / _MANIFEST, folder / _MANIFEST)
    for name in _FOLDERS:
        shutil.copytree(source / name, folder / name)

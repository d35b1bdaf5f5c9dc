"""Finds xgrammar's sources, which `wherry package --grammar` compiles."""

from __future__ import annotations

from pathlib import Path

from wherry import tools
from wherry.base import settings
from wherry.targets.toolchains.toolchain import Requirement

VERSION = tools.XGRAMMAR  # accepted version; cmake/xgrammar.cmake repeats it


def requirement() -> Requirement:
    """Return xgrammar's sources as a requirement: their folder, or how to install them."""
    folder = settings.toolchain_dir() / "xgrammar"
    usable = str(folder) if _version(folder) == VERSION else None
    return Requirement(name=f"xgrammar {VERSION}", installed=usable, fix=tools.command("xgrammar"))


def _version(folder: Path) -> str:
    said = folder / "PKG-INFO"
    if not said.is_file() or not (folder / "include" / "xgrammar" / "compiler.h").is_file():
        return ""
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line[9:].strip() for line in lines if line.startswith("Version: ")), "")

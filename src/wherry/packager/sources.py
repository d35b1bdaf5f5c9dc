"""Finds the C++ sources that apps are built from: in a checkout, or in the installed package."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from wherry.errors import ToolchainError

_BUILD = Path("mobile/native/CMakeLists.txt")
_FOLDERS = (
    "engine",
    "app",
    "mobile/native",
    "mobile/android/src/main/cpp",
    "web/core/headers",
    "cmake",
)
_SUFFIXES = (".cc", ".h", ".cmake", ".txt", ".map")


@cache
def root() -> Path:
    """Return the folder that has engine/, app/ and mobile/native/.

    Raises:
        ToolchainError: this installation has no sources.
    """
    here = Path(__file__).resolve()
    for place in (here.parent / "sources", here.parents[3]):
        if (place / _BUILD).is_file():
            return place
    raise ToolchainError(
        f"The sources of the core are not in {here.parent / 'sources'}. Install wherry again"
    )


@cache
def digest() -> str:
    """Return the first 12 digits of the SHA-256 of all sources."""
    content_hash = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted((root() / folder).rglob("*")):
            if path.suffix in _SUFFIXES and not path.name.endswith("_test.cc"):
                content_hash.update(str(path.relative_to(root())).encode() + path.read_bytes())
    return content_hash.hexdigest()[:12]

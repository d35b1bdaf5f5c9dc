"""What models for pages are linked with, in tests: here, or a skip, or a failure in CI."""

from __future__ import annotations

import os

import pytest

from wherry.targets.toolchains.web import WebToolchain


def missing(what: str) -> None:
    """Skip, or fail where all of it is required."""
    if os.environ.get("WHERRY_REQUIRE_WEB"):
        pytest.fail(what)
    pytest.skip(what)


def require_core() -> None:
    """The core for pages, and its linker."""
    for tool in WebToolchain().requirements():
        if tool.found is None:
            missing(f"no {tool.name}: {tool.fix}")

"""What models for pages are linked with, in tests: here, or a skip, or a failure in CI."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from wherry.targets.toolchains.web import WebToolchain

NODE = 20  # as "engines" in web/package.json; Debian 12 has 18


def missing(what: str) -> None:
    """Skip, or fail where all of it is required."""
    if os.environ.get("WHERRY_REQUIRE_WEB"):
        pytest.fail(what)
    pytest.skip(what)


def require_core() -> None:
    """The core for pages, and its linker."""
    for tool in WebToolchain().requirements():
        if tool.installed is None:
            missing(f"no {tool.name}: {tool.fix}")


def require_node() -> None:
    """Node.js, of a version that the package and Playwright run on."""
    if shutil.which("node") is None:
        missing("no node: apt-get install nodejs npm")
    version = subprocess.check_output(["node", "--version"], text=True).strip()
    if int(version.removeprefix("v").split(".")[0]) < NODE:
        missing(f"Node.js {version}, and tests of the page take {NODE} or later")

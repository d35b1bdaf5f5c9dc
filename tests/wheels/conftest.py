"""A C compiler for other systems."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

import pytest

NEEDED = ("lief", "ziglang")


@pytest.fixture(scope="session")
def link_shared(tmp_path_factory):
    """Link a shared library of one C source; `flags`: with the target."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        what = f"no {' and no '.join(missing)}: pip install {' '.join(missing)}"
        if os.environ.get("CI"):
            pytest.fail(what)
        pytest.skip(what)
    from wheels.sources import zig

    cache = str(tmp_path_factory.mktemp("zig"))

    def make(library: Path, source: str, *flags: str) -> Path:
        library.parent.mkdir(parents=True, exist_ok=True)
        file = library.with_suffix(".c")
        file.write_text(source)
        command = [zig(), "cc", "-shared", *flags, file, "-o", library]
        subprocess.run(command, check=True, env={**os.environ, "ZIG_LOCAL_CACHE_DIR": cache})
        return library

    return make

"""What every test stands on: this tree, a cache of its own, few threads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import wherry
from wherry import settings

ROOT = Path(__file__).parent.parent
# A second tree that is installed would be tested in place of this one.
assert Path(wherry.__file__).is_relative_to(ROOT / "src"), (
    f"wherry is imported from {wherry.__file__}, not from {ROOT / 'src'}"
)
os.environ.setdefault("TVM_NUM_THREADS", "2")
# Programs that targets need are the person's: tests download nothing.
os.environ.setdefault("WHERRY_TOOLS", str(settings.tools_dir()))


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory):
    """No test reads or writes the person's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHERRY_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield

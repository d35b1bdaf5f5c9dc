"""What every test stands on: this tree, a cache of its own, few threads."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import wherry
from wherry.base import settings

ROOT = Path(__file__).parent.parent
# A second tree that is installed would be tested in place of this one.
assert Path(wherry.__file__).is_relative_to(ROOT / "src"), (
    f"wherry is imported from {wherry.__file__}, not from {ROOT / 'src'}"
)
os.environ.setdefault("TVM_NUM_THREADS", "2")
# Programs that targets need are those that `make` has fetched, or the person's.
_TOOLS = ROOT / "build" / "tools"
os.environ.setdefault("WHERRY_TOOLS", str(_TOOLS if _TOOLS.is_dir() else settings.toolchain_dir()))


# No test reads or writes the person's cache. Set before anything imports TVM, which opens our
# plugins where Wherry is installed: they remember the cache.
_CACHE = tempfile.TemporaryDirectory(prefix="wherry-tests-")
os.environ["WHERRY_CACHE"] = _CACHE.name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Kernels for a machine with another device (tests/support/recording.py); all devices."""
    parser.addoption("--record-kernels", metavar="DIR", help="keep what kernels are called with")
    parser.addoption(
        "--every-device", action="store_true", help="run each family in 4 bits on all devices"
    )
    parser.addoption("--record-target", metavar="TARGET", default="cuda:sm_90")


def pytest_configure(config: pytest.Config) -> None:
    if folder := config.getoption("--record-kernels"):
        from .support import recording

        recording.begin(folder, config.getoption("--record-target"))


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browsers first: one of their files takes as long as a tenth of all others.

    Of a test with `by_day` the other cases run at night.
    """
    items.sort(key=lambda item: item.path.parent.name != "web")
    for item in items:
        for mark in item.iter_markers("by_day"):
            case = item.name.partition("[")[2].rstrip("]")
            if not any(part in case for part in mark.args):
                item.add_marker(pytest.mark.nightly)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests were skipped for which reason: what is missing must not go unseen."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = Counter(entry[2].removeprefix("Skipped: ").partition("\n")[0] for entry in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5} skipped: {reason}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup` a file stays on one core, but that of all families: a family does.

    xdist's own groups have no effect in pytest 9.2, whose items do not keep the names that they
    are given.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFamily(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            if not file.endswith(("/test_against_transformers.py", "/test_quantized_families.py")):
                return file
            return file + test.partition("[")[2].rstrip("]").partition("-")[0]

    return ByFamily(config, log)

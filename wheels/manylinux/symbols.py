"""Checks that the libraries of a wheel need no more than its tag promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

# Libraries that come with the packages that the wheel depends on.
OTHERS = ("libtvm_ffi.so", "libtvm_runtime.so")


def check_symbols(report: dict[str, Any], platform: str) -> None:
    """Check what auditwheel says of a wheel.

    Args:
        report: of `auditwheel show --json`; of its fields `sym_tag` is the oldest platform that has
            the versions of all symbols, `external_libs` the libraries that no platform promises.
        platform: the wheel's tag.

    Raises:
        SystemExit: a symbol is too new for the tag, or a library is not that of a dependency.
    """
    match = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", report["sym_tag"])
    tag = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", platform)
    assert tag is not None
    newest = (int(tag[1]), int(tag[2]))
    if not match or match[3] != tag[3] or (int(match[1]), int(match[2])) > newest:
        raise SystemExit(
            f"the symbols are those of {report['sym_tag']}; the wheel is for {platform}: "
            f"{json.dumps(report['versioned_symbols'])}"
        )
    unknown = sorted(set(report["external_libs"]) - set(OTHERS))
    if unknown:
        raise SystemExit(f"libraries that no machine promises: {', '.join(unknown)}")


def audit(wheel: Path) -> dict[str, Any]:
    """Return `auditwheel show --json` of a wheel."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report

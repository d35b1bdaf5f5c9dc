"""`wherry doctor`: what this machine has, and what it lacks."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import click

import wherry
from wherry import settings


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor_command(as_json: bool) -> None:
    """Check what compiling and running need. Ends with 1 if something is missing."""
    checks = {name: _attempt(check) for name, check in _CHECKS.items()}
    good = all(c["ok"] for c in checks.values())
    if as_json:
        click.echo(json.dumps({"ok": good, "checks": checks}, indent=2))
    else:
        for name, check in checks.items():
            click.echo(f"{'ok  ' if check['ok'] else 'FAIL'}  {name:<12} {check['found']}")
    if not good:
        sys.exit(1)


def _attempt(check: Callable[[], str]) -> dict[str, Any]:
    """A failure is a finding here, whatever it is."""
    try:
        return {"ok": True, "found": check()}
    except Exception as e:
        return {"ok": False, "found": f"{type(e).__name__}: {e}"}


def _packages() -> str:
    names = ("apache-tvm", "apache-tvm-ffi", "numpy", "tokenizers")
    found = [f"{name} {version(name)}" for name in names]
    return ", ".join([f"wherry {wherry.__version__}", *found])


def _core() -> str:
    from wherry.plugins import find_core
    from wherry.runtime.core_library import open_core

    library = open_core()
    return f"ABI {library.core_version()}, {find_core()}"


def _cpu() -> str:
    from wherry.targets.target import find

    preset = find("cpu")
    return f"{preset.name} ({', '.join(preset.features)})"


def _linker() -> str:
    found = shutil.which("g++") or shutil.which("clang++")
    if not found:
        raise FileNotFoundError("no g++ or clang++; it links compiled models: apt install g++")
    return found


def _cache() -> str:
    folder = settings.cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    return f"{folder}, {shutil.disk_usage(folder).free / 1e9:.1f} GB free"


_CHECKS: dict[str, Callable[[], str]] = {
    "python": lambda: f"{platform.python_version()} on {platform.platform()}",
    "packages": _packages,
    "core": _core,
    "cpu": _cpu,
    "linker": _linker,
    "cache": _cache,
}

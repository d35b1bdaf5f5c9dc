"""The command `wherry doctor`, which checks this machine."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click

import wherry
from wherry.base import settings
from wherry.errors import WherryError
from wherry.machine.cpu import AMX, cpu_flags
from wherry.machine.tvm_runtime import find_object_linker

from . import doctor_text

if TYPE_CHECKING:
    from wherry.targets.toolchains.toolchain import Requirement


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor_command(as_json: bool) -> None:
    """Check this machine, and list devices and the tools of targets.

    The exit code is 1 if something is missing that `wherry run` needs on this machine's CPU.
    """
    checks = {name: _attempt(check) for name, check in _CHECKS.items()}
    report = {
        "ok": all(c["ok"] for c in checks.values()),
        "checks": checks,
        "devices": _devices(),
        "targets": _targets(),
        "apps": _apps(),
        "auto": _attempt(_auto),
    }
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        for line in doctor_text.lines(report):
            click.echo(line)
    if not report["ok"]:
        sys.exit(1)


def _attempt(check: Callable[[], str]) -> dict[str, Any]:
    """Run a check; return its result, or its failure for any exception."""
    try:
        return {"ok": True, "found": check()}
    except Exception as e:
        return {"ok": False, "found": _description(e)}


def _description(error: Exception) -> str:
    """Describe an error: ours say what to do, and of others the class says more than the text."""
    return str(error) if isinstance(error, WherryError) else f"{type(error).__name__}: {error}"


def _devices() -> dict[str, dict[str, Any]]:
    """List the devices of each kind, or the error of the search."""
    from wherry.machine import devices

    devices_by_kind: dict[str, dict[str, Any]] = {}
    for kind in devices.KINDS:
        try:
            listed = [asdict(device) for device in devices.list_devices(kind)]
            devices_by_kind[kind] = {"devices": listed, "problem": devices.problems(kind)}
        except Exception as e:  # an error of one kind must not hide the others
            devices_by_kind[kind] = {"devices": [], "problem": _description(e)}
    return devices_by_kind


def _targets() -> dict[str, list[dict[str, Any]]]:
    """List the tools of each target beyond TVM, with the command that installs a missing one."""
    from wherry.targets.target import KINDS, find

    by_kind: dict[str, list[dict[str, Any]]] = {}
    for kind in KINDS:
        # "rocm" alone would require an AMD GPU in this machine
        preset = find("rocm:gfx1100" if kind == "rocm" else kind)
        requirements = preset.toolchain.requirements() if preset.toolchain else ()
        by_kind[kind] = [_record(requirement) for requirement in requirements]
    return by_kind


def _record(requirement: Requirement) -> dict[str, Any]:
    return {"name": requirement.name, "found": requirement.installed, "fix": requirement.fix}


def _apps() -> dict[str, list[dict[str, Any]]]:
    """List the C++ compiler of each system that `wherry package` builds libraries for."""
    from wherry.packager.compilers import compiler_for
    from wherry.packager.platforms import PLATFORMS

    return {
        n: [_record(requirement) for requirement in compiler_for(p).requirements]
        for n, p in PLATFORMS.items()
    }


def _auto() -> str:
    from wherry.targets.target import find

    return find("auto").name


def _packages() -> str:
    names = ("apache-tvm", "apache-tvm-ffi", "numpy", "tokenizers")
    versions = [f"{name} {version(name)}" for name in names]
    return ", ".join([f"wherry {wherry.__version__}", *versions])


def _core() -> str:
    from wherry.runtime.core.library import find_core, open_core

    library = open_core()
    return f"ABI {library.wherry_abi_version()}, {find_core()}"


def _cpu() -> str:
    from wherry.targets.target import find

    preset = find("cpu")
    units = ""
    if preset.bf16:
        units = "; its matrix units (AMX) multiply prompts with --activations bf16"
    elif cpu_flags() >= AMX:
        units = "; the system does not let this process use its matrix units (AMX)"
    return f"{preset.name} ({', '.join(preset.features)}){units}"


def _linker() -> str:
    from wherry.targets.hosts import local_compiler

    if compiler := shutil.which(local_compiler() or ""):
        return compiler
    place = find_object_linker()  # raises if it is missing, too
    return f"no C++ compiler is installed; {place.name} links models when they are loaded"


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

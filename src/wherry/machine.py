"""What this machine can run: its CPU, and which of a model's libraries.

This module imports neither TVM nor NumPy.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wherry.artifact import Manifest

# Words of LLVM's triples, and sys.platform there; the first that fits counts.
_SYSTEMS = {
    "linux-android": "android",
    "linux": "linux",
    "apple-ios": "ios",
    "apple-macos": "darwin",
    "pc-windows": "win32",
}


def machine_problems(target: Mapping[str, Any]) -> list[str]:
    """What this machine lacks to run a library built for `target`; [] if nothing."""
    triple = str(target.get("host", ""))
    arch = triple.partition("-")[0].replace("arm64", "aarch64")
    here = platform.machine().replace("AMD64", "x86_64").replace("arm64", "aarch64")
    system = next((s for word, s in _SYSTEMS.items() if f"-{word}" in triple), sys.platform)
    if (arch and arch != here) or system != sys.platform:
        return [f"it was compiled for {triple}, this machine is {here} with {sys.platform}"]
    problems: list[str] = []
    if "objects" in target:
        problems.append("its library is an archive of objects, which wait for a linker")
    if str(target.get("kind", "")) != "llvm":
        return problems  # a device's limits are checked by the code that opens the device
    missing = sorted(set(target.get("features", ())) - cpu_features())
    if missing and cpu_features():
        problems.append(
            f"it needs the CPU features {', '.join(missing)} of {target.get('cpu')}, "
            "which this machine lacks"
        )
    return problems


def library_for(manifest: Manifest, features: frozenset[str] | None = None) -> str:
    """File name of the best of a model's libraries that a machine can run.

    Args:
        manifest: of the compiled folder.
        features: of the machine's CPU, in Linux's names; None: of this one.
    """
    has = cpu_features() if features is None else features
    variants: list[dict[str, Any]] = manifest.target.get("variants", [])
    names = [str(v["library"]) for v in variants if has.issuperset(v["features"])]
    return names[-1] if names else manifest.library


def cpu_features() -> frozenset[str]:
    """Feature flags as Linux names them ("avx512_vnni"); empty where they cannot be read."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return frozenset()
    for line in info.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()

"""The machines that wheels are built for."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

GLIBC = "2.28"  # of manylinux_2_28: RHEL 8, Debian 10, Ubuntu 18.10 and later
MACOS = "14.0"  # the oldest that apache-tvm-ffi-orcjit has a wheel for


@dataclass(frozen=True)
class Machine:
    """A system and a kind of CPU.

    Attributes:
        system: as CMake's folder here is named.
        architecture: as GNU's triples name it.
        platform: the wheel's tag.
    """

    system: Literal["manylinux", "macos", "windows"]
    architecture: str
    platform: str

    @property
    def debian(self) -> str:
        """Debian's name of the architecture."""
        return {"x86_64": "amd64", "aarch64": "arm64"}[self.architecture]


def _linux(architecture: str) -> Machine:
    platform = f"manylinux_{GLIBC.replace('.', '_')}_{architecture}"
    return Machine("manylinux", architecture, platform)


# Named as the hosts of wherry.targets.hosts.
MACHINES = {
    "linux-x86_64": _linux("x86_64"),
    "linux-aarch64": _linux("aarch64"),
    "macos": Machine("macos", "aarch64", f"macosx_{MACOS.replace('.', '_')}_arm64"),
    "windows-x86_64": Machine("windows", "x86_64", "win_amd64"),
}


def here() -> Machine | None:
    """Return this machine; None if no wheel is built for it."""
    return MACHINES.get(f"{sys.platform}-{os.uname().machine}")


def of_wheel(name: str) -> Machine:
    """Return the machine that a wheel's name says it is for.

    Raises:
        SystemExit: it is for none of ours.
    """
    for machine in MACHINES.values():
        if name.endswith(f"-{machine.platform}.whl"):
            return machine
    known = ", ".join(machine.platform for machine in MACHINES.values())
    raise SystemExit(f"{name} is for none of {known}")

"""macOS: what CMake is given besides the checkout, and what is checked of a finished wheel."""

from __future__ import annotations

from pathlib import Path

from ..libraries import check_libraries
from ..machines import Machine
from ..sources import Prepared, tvm_libraries
from .symbols import problems


def prepare(machine: Machine, work: Path) -> Prepared:
    """Fetch TVM's libraries for macOS; Macs' GPUs are driven by TVM's run time for Metal.

    The plugin for Metal, for apps, is left out: it is linked to Apple's frameworks, of which no
    package has a list.
    """
    settings = {
        "WHERRY_METAL": "OFF",
        "WHERRY_OPENCL": "OFF",
        "WHERRY_VULKAN": "OFF",
        **tvm_libraries(machine, "lib{}.dylib", work / "tvm"),
    }
    return Prepared(settings, [])


def check(wheel: Path, machine: Machine, work: Path) -> None:
    """Check the libraries of a finished wheel."""
    check_libraries(wheel, ".dylib", lambda library: problems(library, work / "tvm"))

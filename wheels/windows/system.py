"""Windows: what CMake is given besides the checkout, and what is checked of a finished wheel."""

from __future__ import annotations

from pathlib import Path

from ..libraries import check_libraries
from ..machines import Machine
from ..sources import Prepared, tvm_libraries
from .symbols import problems


def prepare(machine: Machine, work: Path) -> Prepared:
    """Fetch TVM's libraries for Windows.

    No plugin is built: they are classes of TVM's run time, which is Microsoft's C++.
    """
    settings = {
        "WHERRY_METAL": "OFF",
        "WHERRY_OPENCL": "OFF",
        "WHERRY_VULKAN": "OFF",
        **tvm_libraries(machine, "{}.lib", work / "tvm"),
    }
    return Prepared(settings, [])


def check(wheel: Path, machine: Machine, work: Path) -> None:
    """Check the libraries of a finished wheel."""
    check_libraries(wheel, ".dll", lambda library: problems(library, work / "tvm"))

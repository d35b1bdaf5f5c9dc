"""Keeps torch out of a program that has no use for it.

TVM imports torch wherever it is installed: half of the time that a command needs to start.
Who imports it for himself (old checkpoints are read by it) still gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType


def hide() -> None:
    """Let imports of torch by TVM fail, as they do where it is not installed."""
    sys.meta_path.insert(0, _NotForTvm())


class _NotForTvm(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "torch" and _are_importing(("tvm", "tvm_ffi"), sys._getframe(1)):
            raise ModuleNotFoundError("torch is hidden from TVM", name="torch")
        return None


def _are_importing(packages: tuple[str, ...], frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in packages:
            return True
        frame = frame.f_back
    return False

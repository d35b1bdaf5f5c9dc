"""Keeps TVM from importing torch.

TVM imports torch wherever it is installed, which takes half of a command's start. Other imports of
torch still work: it reads old checkpoints.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType


def hide() -> None:
    """Let TVM's imports of torch fail, as on a machine without torch."""
    sys.meta_path.insert(0, _NotForTvm())


class _NotForTvm:
    """Finder of modules; it has no base class, because importlib.abc is slow to import."""

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

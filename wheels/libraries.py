"""Checks the libraries of a wheel that cannot be loaded here."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path


def check_libraries(wheel: Path, suffix: str, problems: Callable[[Path], list[str]]) -> None:
    """Check all libraries of a wheel.

    Args:
        wheel: the finished wheel.
        suffix: of its libraries: ".dylib".
        problems: returns what keeps a library, unpacked of the wheel, from being loaded.

    Raises:
        SystemExit: one could not be loaded; the message lists every reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(suffix)]
            archive.extractall(folder, names)
        wrong = [f"{name}: {why}" for name in names for why in problems(Path(folder, name))]
    if wrong or not names:
        raise SystemExit(f"{wheel} has libraries {names}:\n" + "\n".join(wrong))

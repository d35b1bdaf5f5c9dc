"""Reads the values of a file's metadata, by name, and collects all that is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from wherry.errors import shown

T = TypeVar("T")


class Fields:
    """The metadata under one prefix, such as an architecture's name.

    `problems` collects what is missing or has another kind; `unread` names what is never read.
    """

    def __init__(self, metadata: Mapping[str, Any], prefix: str) -> None:
        self.prefix = f"{prefix}."
        self.values = {
            key.removeprefix(self.prefix): value
            for key, value in metadata.items()
            if key.startswith(self.prefix)
        }
        self.problems: list[str] = []
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def unread(self) -> Iterator[str]:
        """Names of values that were not asked for."""
        return (name for name in self.values if name not in self._asked)

    def integer(self, name: str, default: int | None = None) -> int:
        """A whole number, or a list with a number for each layer that are all the same one."""
        value = self._same(name, self._given(name, default))
        if type(value) is int:
            return value
        return self._wrong(name, value, "a whole number", 0)

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number, in the fewest digits that are the same float32."""
        value = self._same(name, self._given(name, default))
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            # 1e-5 is written as a float32, which is 9.99999974e-06 as a double.
            return float(str(np.float32(value))) if abs(value) < 3e38 else float(value)
        return self._wrong(name, value, "a finite number", 1.0)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self._given(name, default)
        if isinstance(value, bool):
            return value
        return self._wrong(name, value, "true or false", False)

    def text(self, name: str, default: str | None = None) -> str:
        """A string."""
        value = self._given(name, default)
        return value if isinstance(value, str) else self._wrong(name, value, "a text", "")

    def ignore(self, *names: str) -> None:
        """Name values that have no effect."""
        self._asked |= set(names)

    def _given(self, name: str, default: Any) -> Any:
        self._asked.add(name)
        return self.values.get(name, default)

    def _same(self, name: str, value: Any) -> Any:
        """The value of all layers, of a list of values of each."""
        if not isinstance(value, np.ndarray):
            return value
        if not len(value) or (value != value[0]).any():
            self.problems.append(f"{self.prefix}{name}: layers differ, which is not supported")
            return 1
        return value[0].item()

    def _wrong(self, name: str, value: Any, expected: str, stand_in: T) -> T:
        found = "missing" if value is None else f"found {shown(value)}, expected {expected}"
        self.problems.append(f"{self.prefix}{name}: {found}")
        return stand_in

"""Reads metadata fields of a GGUF file by name, and collects all problems with their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from wherry.errors import shown

T = TypeVar("T")


class Fields:
    """The metadata fields whose keys begin with one prefix, such as an architecture's name.

    `problems` lists missing fields and fields of a wrong type; `unread` lists fields never read.
    """

    def __init__(self, metadata: Mapping[str, Any], prefix: str) -> None:
        self.prefix = f"{prefix}."
        self.values = {
            key.removeprefix(self.prefix): value
            for key, value in metadata.items()
            if key.startswith(self.prefix)
        }
        self.problems: list[str] = []
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def unread(self) -> Iterator[str]:
        """Return the names of fields that no method has read."""
        return (name for name in self.values if name not in self._read)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer field; a list with one value per layer must repeat the same value.

        If the field is missing or has a wrong type, adds a problem and returns 0.
        """
        value = self._same(name, self._given(name, default))
        if type(value) is int:
            return value
        return self._wrong(name, value, "a whole number", 0)

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite float field, as the shortest decimal number that rounds to its float32.

        If the field is missing or has a wrong type, adds a problem and returns 1.
        """
        value = self._same(name, self._given(name, default))
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            # GGUF stores 1e-5 as a float32, which as a double would print as 9.99999974e-06.
            return float(str(np.float32(value))) if abs(value) < 3e38 else float(value)
        return self._wrong(name, value, "a finite number", 1.0)

    def value(self, name: str) -> Any:
        """Return a boolean, integer or float field, as `flag`, `integer` or `number` returns it."""
        number = self._same(name, self._given(name, None))
        if isinstance(number, bool):
            return number
        return self.integer(name) if isinstance(number, int) else self.number(name)

    def layers(self, name: str, count: int, default: Any = None) -> list[Any]:
        """Return a field's values for `count` layers; a single value is that of each layer.

        A list may have values of further layers, which are those of multi-token prediction. If it
        is missing or too short, adds a problem and returns zeros.
        """
        value = self._given(name, default)
        if isinstance(value, np.ndarray) and len(value) >= count:
            return [x.item() for x in value[:count]]
        if isinstance(value, bool | int | float):
            return [value] * count
        return [0] * self._wrong(name, value, f"a number for each of {count} layers", count)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean field; if it is missing or invalid, adds a problem and returns False."""
        value = self._given(name, default)
        if isinstance(value, bool):
            return value
        return self._wrong(name, value, "true or false", False)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string field; if it is missing or invalid, adds a problem and returns ""."""
        value = self._given(name, default)
        return value if isinstance(value, str) else self._wrong(name, value, "a text", "")

    def expect(self, name: str, *expected: int | bool) -> None:
        """Add a problem if a field is present and has none of the expected values."""
        if name in self and (value := self.value(name)) not in expected:
            supported = " or ".join(map(str, expected))
            self.problems.append(f"{self.prefix}{name}: found {value}, supported is {supported}")

    def ignore(self, *names: str) -> None:
        """Mark fields as read, because their values have no effect on the conversion."""
        self._read |= set(names)

    def _given(self, name: str, default: Any) -> Any:
        self._read.add(name)
        return self.values.get(name, default)

    def _same(self, name: str, value: Any) -> Any:
        """Return the value that all layers share if `value` is a list with one value per layer."""
        if not isinstance(value, np.ndarray):
            return value
        if not len(value) or (value != value[0]).any():
            self.problems.append(f"{self.prefix}{name}: layers differ, which is not supported")
            return 1
        return value[0].item()

    def _wrong(self, name: str, value: Any, expected: str, stand_in: T) -> T:
        problem = "missing" if value is None else f"found {shown(value)}, expected {expected}"
        self.problems.append(f"{self.prefix}{name}: {problem}")
        return stand_in

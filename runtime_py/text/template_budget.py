"""What a chat template may cost: steps, bytes and time of one rendering.

A template is a program that came with a model, and a thread that runs it cannot be ended from
outside. So the environment counts (template_sandbox.py), by three rules:

- Each turn of a loop, call, filter, test, comparison and attribute is a step.
- No value comes into being whose text would be larger than `most`: what a list refers to many times
  counts as many times. So no single operation, which Python would do in one go, takes long.
- All that is made together stays under `bytes_left`, and the thread's time under a limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Set, ValuesView
from typing import Any

from jinja2 import TemplateError
from jinja2.utils import Namespace

from ..request.caller import Caller

STEPS = 2_000_000
SECONDS = 5.0  # of the thread's own time
LARGEST = 4 * 2**20  # characters of one value, and 4 for each that the request has
TOTAL = 256 * 2**20  # bytes of all values, and 64 for each character that the request has
_BITS = 4096  # of a whole number
_SCALAR = 8  # what a number counts
_DEEPEST = 50  # namespaces in each other
_LOOK = 256  # steps between two looks at the clock


class TooCostly(TemplateError):
    """The template takes more than it may."""


class Budget:
    """Steps and memory that one rendering may take, on one thread."""

    def __init__(self, given: Mapping[str, Any], caller: Caller) -> None:
        self._sizes: dict[int, tuple[Any, int]] = {}  # by id; the value is kept, so the id is its
        self._namespaces = 0  # that were gone through
        self._inside = 0  # namespaces that are being gone through
        self._caller = caller
        self.most = LARGEST
        self.most += 4 * (size := self._size(given))
        self.bytes_left = TOTAL + 64 * size
        self.steps_left = STEPS
        self._end = time.thread_time() + SECONDS

    def step(self, size: int = 0) -> None:
        """Pay for a step that reads or makes `size` bytes.

        Raises:
            TooCostly: there is nothing left.
            Abandoned: nobody waits any more.
        """
        before = self.steps_left
        self.steps_left -= 1 + (size >> 10)
        if self.steps_left < 0:
            raise TooCostly(f"it takes more than {STEPS} steps")
        if before // _LOOK != self.steps_left // _LOOK:
            self._look()

    def _look(self) -> None:
        self._caller.check()
        if time.thread_time() > self._end:
            raise TooCostly(f"it takes more than {SECONDS:g} s")

    def made(self, value: Any) -> Any:
        """Pay for a value that has come into being; the value."""
        self.check(self.size(value))
        self._pay(len(value) if isinstance(value, (str, bytes)) else 0)
        if isinstance(value, (list, tuple, dict, set)):
            self._pay(8 * len(value))
        return value

    def _pay(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise TooCostly("it makes too much text")
        self.step(size)

    def check(self, size: int) -> None:
        """Refuse a value of this size, which is yet to be made."""
        if size > self.most:
            raise TooCostly(f"it makes a value of {size} characters; at most {self.most} are made")

    def listed(self, values: Iterable[Any]) -> list[Any]:
        """All values of an iterator, paid for one by one."""
        made: list[Any] = []
        total = 0
        for value in values:
            total += 8 + self.size(value)
            self.step()
            self.check(total)
            made.append(value)
        return made

    def size(self, value: Any) -> int:
        """Characters that a value stands for, those it refers to twice counted twice.

        Raises:
            TooCostly: it is a number of very many digits, or has namespaces in each other without
                end.
        """
        if isinstance(value, int) and value.bit_length() > _BITS:
            raise TooCostly(f"it makes a number of {value.bit_length()} bits")
        return self._size(value)

    def _size(self, value: Any) -> int:
        if isinstance(value, (str, bytes)):
            return len(value)
        if isinstance(value, range):
            return _SCALAR * len(value)
        if isinstance(value, Namespace):
            return self._held(value)
        if not isinstance(value, (list, tuple, Mapping, Set, ValuesView)):
            return _SCALAR
        if known := self._sizes.get(id(value)):
            return known[1]
        parts: Iterator[Any] = iter(value)
        size, namespaces = 2, self._namespaces
        if isinstance(value, Mapping):
            parts = (part for item in value.items() for part in item)
        for part in parts:
            size += 2 + self._size(part)
            if namespaces != self._namespaces:
                self.check(size)  # not kept, so what is shared is gone through again
        if namespaces == self._namespaces:
            self._sizes[id(value)] = value, size
        return size

    def _held(self, namespace: Any) -> int:
        """Size of what a namespace holds now: it changes, so no size that counts it is kept."""
        self._namespaces += 1
        if self._namespaces % _LOOK == 0:
            self._look()
        if self._inside == _DEEPEST:
            raise TooCostly("it puts namespaces into each other without end")
        self._inside += 1
        size = _SCALAR
        try:
            for part in namespace._Namespace__attrs.values():
                size += self._size(part)
                self.check(size)
        finally:
            self._inside -= 1
        return size


class Counted:
    """An iterable, each of whose turns is a step."""

    def __init__(self, values: Any, budget: Budget) -> None:
        self._values, self._budget = values, budget

    def __iter__(self) -> Iterator[Any]:
        for value in self._values:
            self._budget.step()
            yield value

    def __len__(self) -> int:
        return len(self._values)  # TypeError where it has none, which Jinja expects

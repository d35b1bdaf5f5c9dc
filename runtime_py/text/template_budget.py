"""Limits the steps, bytes and time of rendering a chat template.

A template is a program from the model's folder, and a thread that runs it cannot be stopped from
outside. So the environment counts (template_sandbox.py), by three rules:

- Each iteration, call, filter, test, comparison and attribute access is a step.
- No value may have a text larger than `most`; an object that a list refers to several times counts
  each time. So no single operation of Python takes long.
- The bytes of all values are limited by `bytes_left`, and the thread's time by SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Set, ValuesView
from typing import Any

from jinja2 import TemplateError
from jinja2.utils import Namespace

from ..caller import Caller

STEPS = 2_000_000
SECONDS = 5.0  # seconds of the thread's CPU time for one rendering
# maximum characters of one value, to which each character of the request adds 4
LARGEST = 4 * 2**20
TOTAL = 256 * 2**20  # maximum bytes of all values, to which each character of the request adds 64
_BITS = 4096  # maximum bits of an integer
_SCALAR = 8  # size, in characters, that a number counts as
_DEEPEST = 50  # maximum nesting depth of namespaces
_LOOK = 256  # number of steps between two reads of the clock


class TooCostly(TemplateError):
    """A template that exceeds its limits of steps, memory or time."""


class Budget:
    """The steps and memory that remain for one rendering, on one thread."""

    def __init__(self, given: Mapping[str, Any], caller: Caller) -> None:
        # sizes by id of the value; keeping the value keeps its id unique
        self._sizes: dict[int, tuple[Any, int]] = {}
        self._namespaces = 0  # number of visited namespaces
        self._inside = 0  # number of namespaces that are being visited now
        self._caller = caller
        self.most = LARGEST
        self.most += 4 * (size := self._size(given))
        self.bytes_left = TOTAL + 64 * size
        self.steps_left = STEPS
        self._end = time.thread_time() + SECONDS

    def step(self, size: int = 0) -> None:
        """Count a step that reads or creates `size` bytes.

        Raises:
            TooCostly: the budget is spent.
            Abandoned: the client has gone.
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

    def sized(self, value: Any) -> Any:
        """Count the size of a new value, and return the value."""
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
        """Raise an error if a value of this size would exceed the limits, before it is created."""
        if size > self.most:
            raise TooCostly(f"it makes a value of {size} characters; at most {self.most} are made")

    def listed(self, values: Iterable[Any]) -> list[Any]:
        """Return an iterator's values as a list, with a step counted for each."""
        as_list: list[Any] = []
        total = 0
        for value in values:
            total += 8 + self.size(value)
            self.step()
            self.check(total)
            as_list.append(value)
        return as_list

    def size(self, value: Any) -> int:
        """Return the number of characters in a value's text; repeated objects count each time.

        Raises:
            TooCostly: the value is a number with too many digits, or namespaces contain themselves.
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
            return self._size_of_namespace(value)
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
                # A shared value's size is not cached here, so it is computed again.
                self.check(size)
        if namespaces == self._namespaces:
            self._sizes[id(value)] = value, size
        return size

    def _size_of_namespace(self, namespace: Any) -> int:
        """Return the present size of a namespace.

        It can change, so sizes with it are not cached.
        """
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
    """An iterable that counts each iteration as a step."""

    def __init__(self, values: Any, budget: Budget) -> None:
        self._values, self._budget = values, budget

    def __iter__(self) -> Iterator[Any]:
        for value in self._values:
            self._budget.step()
            yield value

    def __len__(self) -> int:
        return len(self._values)  # raises TypeError for a value without a length, as Jinja expects

"""A bounded store in memory, with separate entries for each tenant."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

MAX_ENTRIES = 4096
MAX_BYTES = 64 * 2**20


class Sized(Protocol):
    """An object that knows its size in bytes."""

    @property
    def size(self) -> int:
        """Return the object's size in bytes."""


T = TypeVar("T", bound=Sized)
Key = tuple[str, str]  # a tenant and an id


class ResponseStore(Generic[T]):
    """A store of entries by tenant and id, which evicts the least recently used one; thread-safe.

    Args:
        entries: maximum number of entries.
        size: maximum bytes of all entries together.
    """

    def __init__(self, entries: int = MAX_ENTRIES, size: int = MAX_BYTES) -> None:
        self._most, self._most_bytes = entries, size
        self._entries: OrderedDict[Key, T] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, key: Key, entry: T) -> bool:
        """Store an entry; return False if it exceeds the size of the whole store."""
        with self._lock:
            self._drop(key)
            if entry.size > self._most_bytes:
                return False
            self._add(key, entry)
            return True

    def get(self, key: Key) -> T | None:
        """Return an entry and mark it as used; None if there is none."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def change(self, key: Key, how: Callable[[T], T]) -> T | None:
        """Replace an entry by `how(entry)` atomically; None if there is no entry.

        Raises:
            ValueError: the result exceeds the whole store; the old entry stays.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            new = how(entry)
            if new.size > self._most_bytes:
                raise ValueError(f"{new.size} bytes; {self._most_bytes} may be kept")
            self._drop(key)
            self._add(key, new)
            return new

    def pop(self, key: Key) -> T | None:
        """Remove an entry and return it; None if there is none."""
        with self._lock:
            return self._drop(key)

    def _add(self, key: Key, entry: T) -> None:
        self._entries[key] = entry
        self._bytes += entry.size
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> T | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size
        return entry

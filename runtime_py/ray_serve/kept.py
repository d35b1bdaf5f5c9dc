"""Remembers which replica stores a response or conversation.

Requests that name the stored item must go to that replica. A replica's server stores items in
memory, as `wherry serve` does; they are lost when it ends.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from .prefix_memory import PrefixMemory

MOST = 2**16  # number of items remembered for each replica
_PATHS = ("/v1/responses", "/v1/conversations")
_IN_PATH = re.compile(r"/v1/(?:responses|conversations)/((?:resp|conv)_[^/]+)")
_IN_ANSWER = re.compile(rb'"id": ?"((?:resp|conv)_\w+)"')


def named(path: str, request: Any) -> str | None:
    """Return the id of the stored item that a request names.

    Args:
        path: the request's path.
        request: the body's JSON; None: the request has no body.
    """
    if in_path := _IN_PATH.match(path):
        return in_path[1]
    if not path.startswith(_PATHS) or not isinstance(request, Mapping):
        return None
    conversation = request.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    identifier = request.get("previous_response_id") or conversation
    return identifier if isinstance(identifier, str) else None


def given(path: str, answer: bytes) -> list[int]:
    """Return the hash keys of the stored items that the first bytes of a response name."""
    return [key(i.decode()) for i in _IN_ANSWER.findall(answer)] if path.startswith(_PATHS) else []


def key(name: str) -> int:
    """Return the hash of an item's id, as an int64."""
    digest = blake2b(name.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Keepers:
    """Maps each stored item to the replica that stores it; thread-safe."""

    def __init__(self) -> None:
        self._memory: PrefixMemory[str] = PrefixMemory(MOST)
        self._lock = threading.Lock()

    def note(self, replica: str, keys: Sequence[int]) -> None:
        """Record that `replica` stores these items."""
        with self._lock:
            self._memory.note(replica, keys)

    def hear(self, replica: str, reported: Mapping[str, Any]) -> None:
        """Record the stored items in the report of a replica."""
        self.note(replica, array("q", reported.get("kept", b"")))

    def newest(self, replica: str, count: int) -> bytes:
        """Return the hash keys of the newest items of `replica`, for its report."""
        with self._lock:
            return array("q", self._memory.newest(replica, count)).tobytes()

    def forget_others(self, replicas: Collection[str]) -> None:
        """Forget replicas that no longer exist."""
        with self._lock:
            self._memory.keep(replicas)

    def of(self, digest: int, replicas: Collection[str]) -> str | None:
        """Return the replica that stores an item; None: unknown."""
        with self._lock:
            return next(iter(self._memory.matches([digest], replicas)), None)


_keepers = Keepers()


def keepers() -> Keepers:
    """Return this process's instance of Keepers, which the ingress writes and its router reads.

    It is a function, because Ray Serve pickles the router's class with its module's values.
    """
    return _keepers

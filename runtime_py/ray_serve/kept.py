"""Which replica keeps a response or a conversation: who names one has to be answered there.

A replica's server keeps them in its memory, as `wherry serve` does; they end with it.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from .prefix_memory import PrefixMemory

MOST = 2**16  # remembered of one replica
_PATHS = ("/v1/responses", "/v1/conversations")
_IN_PATH = re.compile(r"/v1/(?:responses|conversations)/((?:resp|conv)_[^/]+)")
_IN_ANSWER = re.compile(rb'"id": ?"((?:resp|conv)_\w+)"')


def named(path: str, request: Any) -> str | None:
    """The id that a request names.

    Args:
        path: of the request.
        request: its body's JSON; None: it has none.
    """
    if in_path := _IN_PATH.match(path):
        return in_path[1]
    if not path.startswith(_PATHS) or not isinstance(request, Mapping):
        return None
    conversation = request.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    found = request.get("previous_response_id") or conversation
    return found if isinstance(found, str) else None


def given(path: str, answer: bytes) -> list[int]:
    """The keys of what an answer says that it keeps, from the first bytes of its body."""
    return [key(i.decode()) for i in _IN_ANSWER.findall(answer)] if path.startswith(_PATHS) else []


def key(name: str) -> int:
    """What an id is remembered by: an int64."""
    digest = blake2b(name.encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Keepers:
    """Who keeps what; for several threads."""

    def __init__(self) -> None:
        self._memory: PrefixMemory[str] = PrefixMemory(MOST)
        self._lock = threading.Lock()

    def note(self, replica: str, keys: Sequence[int]) -> None:
        """`replica` keeps these."""
        with self._lock:
            self._memory.note(replica, keys)

    def hear(self, replica: str, reported: Mapping[str, Any]) -> None:
        """Take over what a replica reports of itself."""
        self.note(replica, array("q", reported.get("kept", b"")))

    def newest(self, replica: str, count: int) -> bytes:
        """The last that `replica` keeps, as it is reported."""
        with self._lock:
            return array("q", self._memory.newest(replica, count)).tobytes()

    def forget_others(self, replicas: Collection[str]) -> None:
        """Only these are there."""
        with self._lock:
            self._memory.keep(replicas)

    def of(self, wanted: int, replicas: Collection[str]) -> str | None:
        """Who keeps it; None: nobody that is known."""
        with self._lock:
            return next(iter(self._memory.matches([wanted], replicas)), None)


_keepers = Keepers()


def keepers() -> Keepers:
    """This process's keepers: the ingress notes what its router asks.

    A function, because Ray Serve sends the router's class by value, with all that its module holds.
    """
    return _keepers

"""Remembers which replica received which prompts, and chooses one: cache first, load second."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from .prompt_prefix import BLOCK_TOKENS

R = TypeVar("R", bound=Hashable)


class PrefixMemory(Generic[R]):
    """The blocks that each replica received, up to the size of its cache.

    It approximates caches in other processes: it is wrong if those evict earlier, which costs only
    time.

    Args:
        blocks: remembered for each replica unless `resize` says otherwise; about 180 bytes each.
    """

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._sizes: dict[R, int] = {}
        self._held: dict[R, OrderedDict[int, None]] = {}  # the least recently used block is first

    def __len__(self) -> int:
        """The number of remembered blocks of all replicas."""
        return sum(map(len, self._held.values()))

    def resize(self, replica: R, blocks: int) -> None:
        """Set the size of a replica's cache; at most the default is remembered."""
        self._sizes[replica] = min(blocks, self._blocks)
        self._shrink(replica)

    def note(self, replica: R, keys: Sequence[int]) -> None:
        """Record that `replica` received a prompt of these blocks."""
        held = self._held.setdefault(replica, OrderedDict())
        for key in reversed(keys):  # so that the end of a prompt is forgotten before its beginning
            held[key] = None
            held.move_to_end(key)
        self._shrink(replica)

    def matches(self, keys: Sequence[int], replicas: Collection[R]) -> dict[R, int]:
        """The number of leading blocks that each replica has; replicas without one are left out."""
        found = {r: self._matched(self._held[r], keys) for r in replicas if r in self._held}
        return {r: blocks for r, blocks in found.items() if blocks}

    def newest(self, replica: R, count: int) -> list[int]:
        """The most recently used blocks of `replica`, the newest first; beginnings before ends."""
        return list(islice(reversed(self._held.get(replica, {})), count))

    def keep(self, replicas: Collection[R]) -> None:
        """Forget all other replicas."""
        for gone in self._held.keys() | self._sizes.keys():
            if gone not in replicas:
                self._held.pop(gone, None)
                self._sizes.pop(gone, None)

    def _shrink(self, replica: R) -> None:
        held = self._held.get(replica, OrderedDict())
        while len(held) > self._sizes.get(replica, self._blocks):
            held.popitem(last=False)

    @staticmethod
    def _matched(held: OrderedDict[int, None], keys: Sequence[int]) -> int:
        return next((i for i, key in enumerate(keys) if key not in held), len(keys))


def report(newest: Sequence[int], cache_tokens: int | None) -> dict[str, Any]:
    """A replica's report to routers.

    Args:
        newest: blocks that it received, see PrefixMemory.newest.
        cache_tokens: size of its cache; None: unlimited.
    """
    blocks = None if cache_tokens is None else cache_tokens // BLOCK_TOKENS
    return {"newest": array("q", newest).tobytes(), "blocks": blocks}


def hear(memory: PrefixMemory[R], replica: R, reported: Mapping[str, Any]) -> None:
    """Record a replica's `report`; {} if it has none yet."""
    if (blocks := reported.get("blocks")) is not None:
        memory.resize(replica, blocks)
    memory.note(replica, array("q", reported.get("newest", b"")))


def best(matches: Mapping[R, int], loads: Mapping[R, int | None], slack: int) -> list[R]:
    """The replicas with the longest match among those that are not much busier than the idlest.

    Args:
        matches: leading blocks, see PrefixMemory.
        loads: requests at each candidate replica; None: unknown, counts as idle.
        slack: requests that a replica with a match may have more than the idlest one.
    """
    if not loads:
        return []
    most = min(load or 0 for load in loads.values()) + slack
    fit = {r: n for r, n in matches.items() if r in loads and (loads[r] or 0) <= most}
    longest = max(fit.values(), default=0)
    return [r for r, blocks in fit.items() if blocks == longest]

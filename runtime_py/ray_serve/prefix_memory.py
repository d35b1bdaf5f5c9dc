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
    """Remembers the prompt blocks that each replica received, up to the size of its cache.

    It approximates the caches of other processes: it is wrong if those evict earlier, which costs
    only time.

    Args:
        blocks: number of blocks remembered for each replica, of about 180 bytes each, unless
            `resize` sets another.
    """

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._sizes: dict[R, int] = {}
        # blocks of each replica, the least recently used first
        self._blocks_of: dict[R, OrderedDict[int, None]] = {}

    def __len__(self) -> int:
        """Return the number of remembered blocks of all replicas."""
        return sum(map(len, self._blocks_of.values()))

    def resize(self, replica: R, blocks: int) -> None:
        """Set the size of a replica's cache in blocks; the default size is the maximum."""
        self._sizes[replica] = min(blocks, self._blocks)
        self._shrink(replica)

    def note(self, replica: R, keys: Sequence[int]) -> None:
        """Record that `replica` received a prompt of these blocks."""
        blocks = self._blocks_of.setdefault(replica, OrderedDict())
        # reversed, so that the end of a prompt is forgotten before its beginning
        for key in reversed(keys):
            blocks[key] = None
            blocks.move_to_end(key)
        self._shrink(replica)

    def matches(self, keys: Sequence[int], replicas: Collection[R]) -> dict[R, int]:
        """Return the number of leading blocks that each replica has.

        Replicas with none are omitted.
        """
        lengths = {
            r: self._matched(self._blocks_of[r], keys) for r in replicas if r in self._blocks_of
        }
        return {r: blocks for r, blocks in lengths.items() if blocks}

    def newest(self, replica: R, count: int) -> list[int]:
        """Return the most recently used blocks of `replica`, newest first.

        Beginnings before ends.
        """
        return list(islice(reversed(self._blocks_of.get(replica, {})), count))

    def keep(self, replicas: Collection[R]) -> None:
        """Forget all replicas except these."""
        for gone in self._blocks_of.keys() | self._sizes.keys():
            if gone not in replicas:
                self._blocks_of.pop(gone, None)
                self._sizes.pop(gone, None)

    def _shrink(self, replica: R) -> None:
        blocks = self._blocks_of.get(replica, OrderedDict())
        while len(blocks) > self._sizes.get(replica, self._blocks):
            blocks.popitem(last=False)

    @staticmethod
    def _matched(blocks: OrderedDict[int, None], keys: Sequence[int]) -> int:
        return next((i for i, key in enumerate(keys) if key not in blocks), len(keys))


def report(newest: Sequence[int], cache_tokens: int | None) -> dict[str, Any]:
    """Return the report that a replica sends to routers.

    Args:
        newest: blocks that the replica received, from PrefixMemory.newest.
        cache_tokens: size of its prefix cache in tokens; None: unlimited.
    """
    blocks = None if cache_tokens is None else cache_tokens // BLOCK_TOKENS
    return {"newest": array("q", newest).tobytes(), "blocks": blocks}


def hear(memory: PrefixMemory[R], replica: R, reported: Mapping[str, Any]) -> None:
    """Record a replica's report in the memory; {} if the replica has none yet."""
    if (blocks := reported.get("blocks")) is not None:
        memory.resize(replica, blocks)
    memory.note(replica, array("q", reported.get("newest", b"")))


def best(matches: Mapping[R, int], loads: Mapping[R, int | None], slack: int) -> list[R]:
    """Return the replicas with the longest match among those not much busier than the idlest.

    Args:
        matches: number of leading blocks that each replica has, from PrefixMemory.
        loads: number of requests at each candidate replica; None: unknown, counts as idle.
        slack: number of requests by which a replica with a match may exceed the idlest one.
    """
    if not loads:
        return []
    most = min(load or 0 for load in loads.values()) + slack
    fit = {r: n for r, n in matches.items() if r in loads and (loads[r] or 0) <= most}
    longest = max(fit.values(), default=0)
    return [r for r, blocks in fit.items() if blocks == longest]

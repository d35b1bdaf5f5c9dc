"""How much memory models may take together, and how much the next one gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wherry.errors import ResourceError

from ...load.memory import Room
from .prepared import Need, Prepared


class Budget:
    """Memory of each device.

    What is in use counts by plan: mapped weights look free to the system, and are not if models are
    to run. What the system has left bounds it, too: others live here.

    Args:
        limit: bytes of each device, for all models; None: what it has free when it is first asked
            for.
        room: what a device has.
    """

    def __init__(self, limit: int | None, room: Callable[[str], Room]) -> None:
        self._limit, self._room = limit, room
        self._whole: dict[str, Room] = {}

    def whole(self, device: str) -> Room:
        """All that models on a device may take."""
        if device not in self._whole:
            there = self._room(device)
            free = there.free if self._limit is None else self._limit
            self._whole[device] = replace(there, free=free)
        return self._whole[device]

    def left(self, device: str, used: int) -> Room:
        """What is left of it now.

        Args:
            device: the core's name of it.
            used: bytes of the models that are there, by plan.
        """
        whole = self.whole(device)
        planned = None if whole.free is None else whole.free - used
        found = [b for b in (planned, self._room(device).free) if b is not None]
        return replace(whole, free=min(found, default=None))

    def least(self, made: Prepared) -> Need:
        """What a model takes if it must.

        Raises:
            ResourceError: it never fits.
        """
        return made.least(self.whole(made.device))

    def given(self, made: Prepared, left: Room) -> Need:
        """What a model takes of what is left, which is enough for the least.

        It is the usual share, so that others find room, but never less than it needs.
        """
        least = self.least(made)
        try:
            return max(made.within(left), least, key=lambda need: need.bytes)
        except ResourceError:  # as much as there is, and not more
            return least

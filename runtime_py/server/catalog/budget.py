"""Divides the memory of devices between models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from wherry.errors import ResourceError

from ...load.memory import Room
from .prepared import Need, Prepared


class Budget:
    """Plans how much memory of each device a model gets.

    Used memory is counted by the models' plans, because the system counts mapped weights as free
    although running models need them. The system's free memory is a limit, too, because other
    programs run on the machine.

    Args:
        limit: bytes of each device for all models; None: its free memory at the first use.
        room: returns the memory of a device.
    """

    def __init__(self, limit: int | None, room: Callable[[str], Room]) -> None:
        self._limit, self._room = limit, room
        self._totals: dict[str, Room] = {}

    def total(self, device: str) -> Room:
        """Return the memory for all models on a device."""
        if device not in self._totals:
            there = self._room(device)
            free = there.free if self._limit is None else self._limit
            self._totals[device] = replace(there, free=free)
        return self._totals[device]

    def left(self, device: str, used: int) -> Room:
        """Return the memory of a device that loaded models do not use.

        Args:
            device: the core's name of the device.
            used: bytes of the loaded models, by their plans.
        """
        total = self.total(device)
        planned = None if total.free is None else total.free - used
        limits = [b for b in (planned, self._room(device).free) if b is not None]
        return replace(total, free=min(limits, default=None))

    def least(self, prepared: Prepared) -> Need:
        """Return the minimum memory that a model needs.

        Raises:
            ResourceError: the model does not fit, even without other models.
        """
        return prepared.least(self.total(prepared.device))

    def given(self, prepared: Prepared, left: Room) -> Need:
        """Return the memory that a model gets; `left` is at least its minimum.

        The model gets its usual share, so that other models find room, but at least the minimum.
        """
        least = self.least(prepared)
        try:
            return max(prepared.within(left), least, key=lambda need: need.bytes)
        except ResourceError:  # the usual share is too small, so the model gets all that is left
            return least

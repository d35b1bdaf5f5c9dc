"""What is known of each model of a catalog: whether it is in memory, and who waits for it."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from ...load.model import LoadedModel
from ..models import Listed
from .prepared import Prepared


@dataclass(eq=False, slots=True)
class Resident:
    """A model in memory.

    Attributes:
        bytes: that it takes, by plan.
        keep_alive: seconds that it stays after its last answer.
        leases: requests that use it.
        used_at: when the last of them ended, on the monotonic clock.
        over: it has failed, or another has its name now: it takes no request, and goes.
        yields: it takes no request until another model has found room.
    """

    loaded: LoadedModel
    bytes: int
    keep_alive: float
    leases: int = 0
    used_at: float = field(default_factory=time.monotonic)
    over: bool = False
    yields: bool = False

    @property
    def ends_at(self) -> float:
        """When it is not needed any more, on the monotonic clock."""
        if self.leases:
            return math.inf
        return 0.0 if self.over else self.used_at + self.keep_alive


@dataclass(eq=False, slots=True)
class Loading:
    """A load that is queued or under way, and those who wait for it.

    Attributes:
        wait_seconds: that it may wait for others to end their answers.
        keep_alive: as the last of those who wait asked for.
    """

    wait_seconds: float
    future: Future[Resident] = field(default_factory=Future)
    waiters: int = 0
    keep_alive: float | None = None


@dataclass(eq=False, slots=True)
class Slot:
    """One model of the list."""

    made: Prepared
    listed: Listed
    resident: Resident | None = None
    loading: Loading | None = None

    @property
    def idle(self) -> bool:
        """Whether it could be unloaded now."""
        return self.resident is not None and not self.resident.leases

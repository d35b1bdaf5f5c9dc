"""The state of each model of a catalog: whether it is loaded, and which requests wait for it."""

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
    """A model in memory, and the requests that use it.

    Attributes:
        bytes: the memory that the model was planned to use.
        keep_alive: seconds that the model stays after its last response.
        leases: number of requests that use the model.
        used_at: end of the last response, on the monotonic clock.
        over: whether the model has failed or another model has its name; it then accepts no request
            and is unloaded.
        yields: whether the model accepts no request until another model has found room.
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
        """Return when the model's keep-alive ends, on the monotonic clock."""
        if self.leases:
            return math.inf
        return 0.0 if self.over else self.used_at + self.keep_alive


@dataclass(eq=False, slots=True)
class Loading:
    """A queued or running load, and the requests that wait for it.

    Attributes:
        wait_seconds: seconds that the load may wait for other models to finish their responses.
        keep_alive: keep-alive, in seconds, of the last request that waits.
    """

    wait_seconds: float
    future: Future[Resident] = field(default_factory=Future)
    waiters: int = 0
    keep_alive: float | None = None


@dataclass(eq=False, slots=True)
class Slot:
    """A named model of the catalog, loaded or not."""

    prepared: Prepared
    listed: Listed
    resident: Resident | None = None
    loading: Loading | None = None

    @property
    def idle(self) -> bool:
        """Tell whether the model can be unloaded now."""
        return self.resident is not None and not self.resident.leases

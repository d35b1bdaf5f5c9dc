"""The single thread that loads and unloads models, so that memory is counted in one place.

A model is unloaded after its keep-alive, or when another model needs its memory: the least recently
used model first, never while it answers. If all candidates are answering, the first one accepts no
new requests until one of them is idle; its new requests wait behind the earlier load.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from wherry.errors import WherryError

from ...errors import BusyError
from ...load.model import LoadedModel
from ..wire.errors import shutting_down
from .budget import Budget
from .prepared import Need, Prepared
from .slots import Loading, Resident, Slot

_log = logging.getLogger(__name__)
Load = Callable[[Prepared, "int | None"], LoadedModel]


class Keeper:
    """Loads queued models.

    Args:
        slots: returns the slots of all models; called with `changed` locked.
        budget: the budget that divides memory.
        load: the function that loads a model on this thread.
        on_load: callback with each loaded model.

    Attributes:
        changed: guards the slots and their contents; notified when any of these changes.
        closed: whether the keeper loads no more models.
    """

    def __init__(
        self,
        slots: Callable[[], Sequence[Slot]],
        budget: Budget,
        load: Load,
        on_load: Callable[[LoadedModel], None],
    ) -> None:
        self.changed = threading.Condition()
        self.closed = False
        self._slots, self._budget, self._load, self._on_load = slots, budget, load, on_load
        self._queue: deque[Slot] = deque()
        self._thread = threading.Thread(target=self._run, name="wherry-models", daemon=True)

    def start(self) -> None:
        """Start the keeper's thread."""
        self._thread.start()

    def request(self, slot: Slot, wait_seconds: float) -> Loading:
        """Return the running or queued load of a model; queue one if there is none.

        The caller must hold the lock `changed`.
        """
        if slot.loading is None:
            slot.loading = Loading(wait_seconds)
            self._queue.append(slot)
            self.changed.notify_all()
        slot.loading.waiters += 1
        return slot.loading

    def close(self) -> None:
        """End the thread after its current load; waiting requests get an error. Idempotent."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        """Return the thread's next task; None at the end."""
        with self.changed:
            while not self.closed:
                if over := [s for s in self._slots() if _is_over(s)]:
                    return partial(self._free, over[0])
                if self._queue:
                    slot = self._queue.popleft()
                    assert slot.loading
                    return partial(self._serve, slot, slot.loading)
                ends = [s.resident.ends_at for s in self._slots() if s.resident]
                end = min(ends, default=math.inf)
                self.changed.wait(None if end == math.inf else max(0.0, end - time.monotonic()))
            for slot in self._queue:
                assert slot.loading
                slot.loading.future.set_exception(shutting_down())
                slot.loading = None
            return None

    def _serve(self, slot: Slot, loading: Loading) -> None:
        """Load a model if a request still waits for it."""
        with self.changed:
            if not loading.waiters:
                slot.loading = None
                return
        try:
            resident = self._resident_of(slot, loading)
        except BaseException as e:  # the waiting requests get every error, and the thread continues
            if not isinstance(e, WherryError):
                _log.exception("%s cannot be loaded", slot.listed.name)
            with self.changed:
                slot.loading = None
                loading.future.set_exception(e)
            return
        with self.changed:
            slot.resident, slot.loading = resident, None
            resident.leases += loading.waiters
            if loading.keep_alive is not None:
                resident.keep_alive = loading.keep_alive
            loading.future.set_result(resident)

    def _resident_of(self, slot: Slot, loading: Loading) -> Resident:
        end = time.monotonic() + loading.wait_seconds
        with self.changed:
            old = slot.resident
            # the model was told to yield its memory, but that was not needed
            if old and not old.over:
                return old
            self._wait(lambda: not old or not old.leases, end)
            if old and old.leases:
                raise BusyError(f"{slot.listed.name} ends its answers. Try again in a moment.")
            prepared = slot.prepared
        self._free(slot)
        need = self._make_room(prepared, end)
        start = time.monotonic()
        loaded = self._load(prepared, need.kv_tokens)
        self._on_load(loaded)
        seconds = time.monotonic() - start
        _log.info("%s is loaded in %.1f s, %.0f MB", prepared.spec.name, seconds, need.bytes / 1e6)
        return Resident(loaded, need.bytes, prepared.spec.keep_alive)

    def _make_room(self, prepared: Prepared, end: float) -> Need:
        """Unload models until one fits; return the memory that it may use.

        Raises:
            BusyError: other models did not finish their responses in time.
            ResourceError: the model does not fit.
        """
        least = self._budget.least(prepared).bytes
        try:
            while True:
                left = self._budget.left(prepared.device, self._used(prepared.device))
                if left.free is None or least <= left.free:
                    return self._budget.given(prepared, left)
                if not self._unload_one(prepared, end):
                    # other programs use some of the memory, so the model gets what is left
                    return prepared.within(left)
        finally:
            with self.changed:
                for other in self._slots():
                    if other.resident:
                        other.resident.yields = False

    def _used(self, device: str) -> int:
        with self.changed:
            slots = [s for s in self._slots() if s.prepared.device == device]
            return sum(s.resident.bytes for s in slots if s.resident)

    def _unload_one(self, prepared: Prepared, end: float) -> bool:
        """Unload the least recently used model; return False if no model can be unloaded.

        Raises:
            BusyError: all models were answering until `end`.
        """
        with self.changed:
            there = [(s, s.resident) for s in self._slots() if s.prepared.device == prepared.device]
            loaded = [(s, r) for s, r in there if r]
            loaded.sort(key=lambda pair: (pair[1].leases > 0, pair[1].used_at))
            if not loaded:
                return False
            if loaded[0][1].leases:
                loaded[0][1].yields = True
                self._wait(lambda: any(not r.leases for _, r in loaded), end)
            idle = [s for s, r in loaded if not r.leases]
            if not idle:
                names = ", ".join(s.listed.name for s, _ in loaded)
                raise BusyError(
                    f"{prepared.spec.name} waits for memory that {names} "
                    f"{'has' if len(loaded) == 1 else 'have'} to answer with. "
                    "Try again in a moment."
                )
        self._free(idle[0])
        return True

    def _wait(self, done: Callable[[], bool], end: float) -> None:
        seconds = max(0.0, end - time.monotonic())
        self.changed.wait_for(lambda: self.closed or done(), seconds)

    def _free(self, slot: Slot) -> None:
        """Unload a model, unless a request uses it."""
        with self.changed:
            resident = slot.resident
            if resident is None or resident.leases:
                return
            slot.resident = None
        resident.loaded.close()
        _log.info("%s is unloaded", slot.listed.name)


def _is_over(slot: Slot) -> bool:
    """Tell whether a loaded model is no longer needed."""
    return slot.resident is not None and slot.resident.ends_at <= time.monotonic()

"""Several models, only some of them in memory; a model is loaded at its first request."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from wherry.artifact.head import Head, read_head
from wherry.errors import ModelError, ResourceError, WherryError

from ...errors import BusyError
from ...load import memory
from ...load.memory import Room
from ...load.model import LoadedModel
from ...load.options import LoadOptions, Progress
from ..models import Listed, Served, longest_input, named, unknown_model
from ..wire.errors import RETRY_AFTER_SECONDS, ApiError, shutting_down
from . import listing, prepared
from .budget import Budget
from .keeper import Keeper, Load
from .listing import KEEP_ALIVE_SECONDS
from .prepared import Prepared
from .slots import Loading, Resident, Slot

WAIT_SECONDS = 120.0  # seconds that a load waits for other models to finish their responses


def _head_of(folder: Path) -> Head | None:
    try:
        return read_head(folder)
    except ModelError:  # the load of the model will report the error
        return None


class Catalog(AbstractContextManager["Catalog"]):
    """Implements `Models` for several models; any thread may take or return a lease.

    Args:
        models: the models; the first one is the default.
        memory_limit: bytes for the models on one device together; None: its free memory.
        keep_alive: seconds that models added later stay loaded; `defaults` are their options.
        load: the function that loads a model.
        room: returns the memory of a device.
        wait_seconds: seconds that a load waits for other models to finish their responses.
    """

    def __init__(
        self,
        models: Sequence[Prepared],
        *,
        memory_limit: int | None = None,
        keep_alive: float = KEEP_ALIVE_SECONDS,
        defaults: LoadOptions | None = None,
        load: Load = prepared.load,
        room: Callable[[str], Room] = memory.room,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self.keep_alive = keep_alive
        self.defaults: LoadOptions = defaults or {}
        self._wait_seconds = wait_seconds
        self._max_queue: int | None = None
        self._names: dict[str, Slot] = {}  # slot of each name, aliases included
        self._keeper = Keeper(self._slots, Budget(memory_limit, room), load, self._bound)
        self._changed = self._keeper.changed
        for model in models:
            self.add(model)
        self._keeper.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def listed(self) -> list[Listed]:
        """Return all models with their aliases; implements `Models.listed`."""
        with self._changed:
            return [replace(slot.listed, name=name) for name, slot in self._names.items()]

    def served(self) -> list[Served]:
        """Return the loaded models; implements `Models.served`."""
        with self._changed:
            return [_served(slot, slot.resident) for slot in self._slots() if slot.resident]

    def limit_queues(self, waiting: int) -> None:
        """Limit the queue of each model; implements `Models.limit_queues`."""
        with self._changed:
            self._max_queue = waiting
            for slot in self._slots():
                if slot.resident:
                    self._bound(slot.resident.loaded)

    @asynccontextmanager
    async def lease(self, name: str, keep_alive: float | None = None) -> AsyncIterator[Served]:
        """Lend a model, which is loaded if necessary; implements `Models.lease`.

        Raises:
            ApiError: 404: no model has this name; 503: the model does not fit into memory; 500: it
                cannot
                be loaded. The next request tries again.
        """
        slot = self._find(name)
        entered = self._enter(slot, keep_alive, self._wait_seconds)
        resident = await self._loaded(slot, entered) if isinstance(entered, Loading) else entered
        try:
            yield _served(slot, resident)
        finally:
            self._release(resident)

    def unload(self, name: str) -> bool:
        """Unload a model; implements `Models.unload`."""
        slot = self._find(name)
        with self._changed:
            if slot.resident:
                slot.resident.keep_alive = 0.0
            self._changed.notify_all()
        return True

    def add(self, model: Prepared) -> None:
        """Add a model; a model that already has its name is unloaded when it has answered."""
        spec = model.spec
        listed = Listed(
            spec.name,
            longest_input(model.config.get("context"), _head_of(model.folder)),
            root=spec.name,
            folder=model.folder,
            manifest=model.manifest,
        )
        with self._changed:
            slot = self._names.get(spec.name)
            if slot is None or slot.listed.name != spec.name:
                slot = Slot(model, listed)
            elif (slot.prepared.folder, slot.prepared.spec) != (model.folder, spec):
                slot.prepared, slot.listed = model, listed
                if slot.resident:
                    slot.resident.over = True
            for name in (spec.name, *spec.aliases):
                self._names[name] = slot
            self._changed.notify_all()

    def preload(self) -> None:
        """Load the models whose entry says `preload`; blocks until they are loaded.

        Raises:
            WherryError: a model cannot be loaded, or they do not fit together.
        """
        residents = []
        try:
            for slot in self._slots():
                if slot.prepared.spec.preload:
                    entered = self._enter(slot, None, 0.0)
                    residents.append(
                        entered.future.result() if isinstance(entered, Loading) else entered
                    )
        except BusyError as e:
            raise ResourceError(
                f"The models to preload do not fit into memory together: {e} Preload fewer, or "
                "give them a smaller context or kv_tokens."
            ) from e
        finally:
            for resident in residents:
                self._release(resident)

    def close(self) -> None:
        """Abort all requests and free all models; idempotent."""
        self._keeper.close()
        with self._changed:
            residents = [slot.resident for slot in self._slots() if slot.resident]
            for slot in self._slots():
                slot.resident = None
        for resident in residents:
            resident.loaded.close()

    def _slots(self) -> list[Slot]:
        return list(dict.fromkeys(self._names.values()))

    def _bound(self, loaded: LoadedModel) -> None:
        if self._max_queue is not None:
            loaded.dispatcher.limit = loaded.max_batch + self._max_queue

    def _find(self, name: str) -> Slot:
        with self._changed:
            if slot := named(self._names, name):
                return slot
        raise unknown_model(name, self.listed())

    def _enter(
        self, slot: Slot, keep_alive: float | None, wait_seconds: float
    ) -> Resident | Loading:
        """Return a lease on a loaded model, or a load to wait for."""
        with self._changed:
            if self._keeper.closed:
                raise shutting_down()
            resident = slot.resident
            if resident and resident.loaded.dispatcher.failed:
                resident.over = True
            if resident and not (resident.over or resident.yields):
                resident.leases += 1
                resident.keep_alive = resident.keep_alive if keep_alive is None else keep_alive
                return resident
            loading = self._keeper.request(slot, wait_seconds)
            loading.keep_alive = loading.keep_alive if keep_alive is None else keep_alive
            return loading

    async def _loaded(self, slot: Slot, loading: Loading) -> Resident:
        """Await a load and return the model; a cancellation does not stop the load."""
        try:
            return await asyncio.shield(asyncio.wrap_future(loading.future))
        except asyncio.CancelledError:
            self._leave(loading)
            raise
        except Exception as e:
            raise _unavailable(slot.listed.name, e) from e

    def _leave(self, loading: Loading) -> None:
        """Stop waiting for a load; if the model is already loaded, return the lease."""
        with self._changed:
            if not loading.future.done():
                loading.waiters -= 1
            elif loading.future.exception() is None:
                self._release(loading.future.result())

    def _release(self, resident: Resident) -> None:
        with self._changed:
            resident.leases -= 1
            resident.used_at = time.monotonic()
            resident.over = resident.over or resident.loaded.dispatcher.failed
            self._changed.notify_all()


def opened(
    place: Path,
    *,
    memory_limit: int | None = None,
    keep_alive: float | None = None,
    progress: Progress | None = None,
    options: LoadOptions | None = None,
) -> Catalog:
    """Return the catalog of a YAML file or a folder: compile all models and preload some.

    Args:
        place: the file or folder, as in listing.read.
        memory_limit: maximum bytes of all models in memory; overrides the file's.
        keep_alive: seconds that a model stays loaded if the file has no value for it.
        progress: callback for the progress of downloads, conversions and compilations.
        options: defaults for every model's options.

    Raises:
        WherryError: lists all models that cannot be served.
    """
    read = listing.read(place, options, keep_alive)
    limit = read.memory_limit if memory_limit is None else memory_limit
    models = prepared.prepare_all(read.specs, progress)
    catalog = Catalog(
        models, memory_limit=limit, keep_alive=read.keep_alive, defaults=read.defaults
    )
    try:
        catalog.preload()
    except BaseException:
        catalog.close()
        raise
    return catalog


def _served(slot: Slot, resident: Resident) -> Served:
    ends = resident.used_at + resident.keep_alive - time.monotonic()
    expires = None if ends == math.inf else time.time() + ends
    return Served(slot.listed.name, resident.loaded, slot.listed, resident.bytes, expires)


def _unavailable(name: str, error: Exception) -> ApiError:
    """Return the error for requests that waited for a load that failed."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, ResourceError):
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        return ApiError(503, str(error), param="model", code="model_unavailable", headers=headers)
    reason = f": {error}" if isinstance(error, WherryError) else "; the server's log says why"
    message = f"The model {name!r} cannot be loaded{reason}"
    return ApiError(500, message, param="model", code="model_load_failed")

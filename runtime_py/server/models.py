"""The models of a server, and their leases."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from wherry.artifact.manifest import Manifest

from ..load.model import LoadedModel
from .wire.errors import ApiError

_SHOWN = 100  # characters of a name in an error
LATEST = ":latest"  # Ollama's clients add it to a name without a tag
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that clients may name, loaded or not.

    Attributes:
        context: tokens; None: unknown before it is loaded.
        created: seconds since 1970.
        root: the model's name if `name` is an alias (vLLM's field).
        folder: the compiled folder; None in tests. `manifest` is its manifest.
    """

    name: str
    context: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    root: str = ""
    folder: Path | None = None
    manifest: Manifest | None = None

    def described(self) -> dict[str, Any]:
        """Describe the model in OpenAI's shape."""
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "wherry",
            "max_model_len": self.context,  # vLLM's name
            "root": self.root or self.name,
        }


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded model, under its name for clients.

    Attributes:
        listed: its entry.
        bytes: its memory, by plan; None: unknown.
        expires: when it is unloaded without a request, seconds since 1970; None: never.
    """

    name: str
    loaded: LoadedModel
    listed: Listed
    bytes: int | None = None
    expires: float | None = None


class Models(Protocol):
    """The models of a server."""

    def listed(self) -> Sequence[Listed]:
        """All models that clients may name."""

    def served(self) -> Sequence[Served]:
        """The loaded models."""

    def limit_queues(self, waiting: int) -> None:
        """Set the number of outputs that may wait for each model besides the running ones."""

    def lease(
        self, name: str, keep_alive: float | None = None
    ) -> AbstractAsyncContextManager[Served]:
        """Load a model if needed, and keep it loaded for the length of the lease; "": the default.

        Args:
            name: the client's name of the model.
            keep_alive: seconds that it stays afterwards; infinity: for ever; None: unchanged.

        Raises:
            ApiError: 404: no model has this name.
        """

    def unload(self, name: str) -> bool:
        """Unload a model when it is idle; False if it always stays. Raises as `lease`."""


class OneModel:
    """A server of one model, which the caller owns.

    Args:
        loaded: the model.
        name: its name for clients.
    """

    def __init__(self, loaded: LoadedModel, name: str) -> None:
        origin = loaded.origin
        self._listed = Listed(
            name,
            loaded.context,
            folder=origin.folder if origin else None,
            manifest=origin.manifest if origin else None,
        )
        self._served = Served(name, loaded, self._listed)

    def listed(self) -> list[Listed]:
        """See Models."""
        return [self._listed]

    def served(self) -> list[Served]:
        """See Models."""
        return [self._served]

    def limit_queues(self, waiting: int) -> None:
        """See Models."""
        loaded = self._served.loaded
        loaded.dispatcher.limit = loaded.max_batch + waiting

    @asynccontextmanager
    async def lease(self, name: str, keep_alive: float | None = None) -> AsyncIterator[Served]:
        """See Models."""
        yield self._find(name)

    def unload(self, name: str) -> bool:
        """See Models; its owner unloads it."""
        self._find(name)
        return False

    def _find(self, name: str) -> Served:
        if found := named({self._served.name: self._served}, name):
            return found
        raise unknown_model(name, self.listed())


def named(known: Mapping[str, T], name: str) -> T | None:
    """Find an entry by a client's name: "" is the first one; ":latest" is ignored."""
    if not name:
        return next(iter(known.values()), None)
    return known.get(name) or known.get(name.removesuffix(LATEST))


def unknown_model(name: str, listed: Sequence[Listed]) -> ApiError:
    """The error for an unknown name."""
    known = ", ".join(repr(m.name) for m in listed) or "nothing"
    verb = "are" if len(listed) > 1 else "is"
    return ApiError(
        404,
        f"The model {name[:_SHOWN]!r} is not served here; {known} {verb}",
        param="model",
        code="model_not_found",
    )

"""Which models a server has, and who holds them meanwhile."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from wherry.artifact import Manifest

from ..load.model import LoadedModel
from .wire.errors import ApiError

_SHOWN = 100  # characters of a name in an error
LATEST = ":latest"  # what Ollama's clients add to a name without a tag
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that clients may name, in memory or not.

    Attributes:
        context: tokens; None: known when it is loaded.
        created: seconds since 1970.
        root: what it is called if `name` is an alias, which vLLM calls so.
        folder: compiled; None if there is none, as in tests. `manifest` is its own.
    """

    name: str
    context: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    root: str = ""
    folder: Path | None = None
    manifest: Manifest | None = None

    def described(self) -> dict[str, Any]:
        """The model in OpenAI's shape."""
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "wherry",
            "max_model_len": self.context,  # as vLLM names it
            "root": self.root or self.name,
        }


@dataclass(frozen=True, slots=True)
class Served:
    """A model in memory, under the name that clients use.

    Attributes:
        listed: what is known of it.
        bytes: that it takes, by plan; None: nobody counts them.
        expires: when it goes if nobody asks for it, seconds since 1970; None: never.
    """

    name: str
    loaded: LoadedModel
    listed: Listed
    bytes: int | None = None
    expires: float | None = None


class Models(Protocol):
    """The models of a server."""

    def listed(self) -> Sequence[Listed]:
        """All that clients may name."""

    def served(self) -> Sequence[Served]:
        """Those in memory."""

    def limit_queues(self, waiting: int) -> None:
        """Let so many outputs wait for each model, beyond those that it runs."""

    def lease(
        self, name: str, keep_alive: float | None = None
    ) -> AbstractAsyncContextManager[Served]:
        """The model of a name, "" being the default's, in memory for as long as it is held.

        Args:
            name: as clients have it.
            keep_alive: seconds that it stays afterwards, if it does not stay anyway; infinity: for
                ever; None: as before.

        Raises:
            ApiError: 404, no model has this name.
        """

    def unload(self, name: str) -> bool:
        """Let a model go when it has answered; False if it stays anyway. Raises as `lease`."""


class OneModel:
    """A server of one model, which others own.

    Args:
        loaded: the model.
        name: what clients call it.
    """

    def __init__(self, loaded: LoadedModel, name: str) -> None:
        self._listed = Listed(name, loaded.context, folder=loaded.folder, manifest=loaded.manifest)
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
        """See Models: its owner unloads it."""
        self._find(name)
        return False

    def _find(self, name: str) -> Served:
        if found := named({self._served.name: self._served}, name):
            return found
        raise unknown_model(name, self.listed())


def named(known: Mapping[str, T], name: str) -> T | None:
    """What has a name, as clients have it: "" is the first of all; ":latest" adds nothing."""
    if not name:
        return next(iter(known.values()), None)
    return known.get(name) or known.get(name.removesuffix(LATEST))


def unknown_model(name: str, listed: Sequence[Listed]) -> ApiError:
    """The error for a name that no model has."""
    known = ", ".join(repr(m.name) for m in listed) or "nothing"
    verb = "are" if len(listed) > 1 else "is"
    return ApiError(
        404,
        f"The model {name[:_SHOWN]!r} is not served here; {known} {verb}",
        param="model",
        code="model_not_found",
    )

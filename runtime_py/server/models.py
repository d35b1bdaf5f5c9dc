"""The models of a server, and the leases by which requests use them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from wherry.artifact.head import Head
from wherry.artifact.manifest import Manifest

from ..load.model import LoadedModel
from .wire.errors import ApiError

_SHOWN = 100  # characters of a wrong name that an error message shows
LATEST = ":latest"  # suffix that Ollama's clients add to a name without a tag
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that clients may name, loaded or not.

    Attributes:
        context: the context in tokens; None: unknown before the model is loaded.
        created: Unix time in seconds.
        root: the model's name if `name` is an alias (vLLM's field).
        folder: the compiled folder; None in tests.
        manifest: the manifest of the compiled folder.
    """

    name: str
    context: int | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    root: str = ""
    folder: Path | None = None
    manifest: Manifest | None = None

    def described(self) -> dict[str, Any]:
        """Return the description of the model in OpenAI's shape."""
        sees = self.manifest is not None and "vision" in self.manifest.capabilities
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "wherry",
            "max_model_len": self.context,  # vLLM's name of the context
            "root": self.root or self.name,
            "input_modalities": ["text", "image"] if sees else ["text"],  # OpenRouter's name
        }


@dataclass(frozen=True, slots=True)
class Served:
    """A loaded model, under its name for clients.

    Attributes:
        listed: the model's entry in the list.
        bytes: the memory that the model was planned to use; None: unknown.
        expires: Unix time in seconds at which an idle model is unloaded; None: never.
    """

    name: str
    loaded: LoadedModel
    listed: Listed
    bytes: int | None = None
    expires: float | None = None


class Models(Protocol):
    """The interface of a server's models, a single one or a catalog."""

    def listed(self) -> Sequence[Listed]:
        """Return all models that clients may name."""

    def served(self) -> Sequence[Served]:
        """Return the loaded models."""

    def limit_queues(self, waiting: int) -> None:
        """Set how many outputs may wait for each model, in addition to the running ones."""

    def lease(
        self, name: str, keep_alive: float | None = None
    ) -> AbstractAsyncContextManager[Served]:
        """Load a model if needed, and keep it loaded during the lease; "" is the default model.

        Args:
            name: the client's name of the model.
            keep_alive: seconds that the model stays loaded afterwards; infinity: for ever; None:
                unchanged.

        Raises:
            ApiError: 404: no model has this name.
        """

    def unload(self, name: str) -> bool:
        """Unload a model when it is idle; False if it always stays. Errors as in `lease`."""


def longest_input(context: int | None, head: Head | None) -> int | None:
    """Return the number of tokens that a model reads: some encoders read less than a context."""
    most = getattr(head, "max_tokens", None)
    return min(context, most) if context and most else context


class OneModel:
    """Implements `Models` for a single model, which the caller owns.

    Args:
        loaded: the model.
        name: the model's name for clients.
    """

    def __init__(self, loaded: LoadedModel, name: str) -> None:
        origin = loaded.origin
        self._listed = Listed(
            name,
            longest_input(loaded.context, loaded.head),
            folder=origin.folder if origin else None,
            manifest=origin.manifest if origin else None,
        )
        self._served = Served(name, loaded, self._listed)

    def listed(self) -> list[Listed]:
        """Return the model as the only one; implements `Models.listed`."""
        return [self._listed]

    def served(self) -> list[Served]:
        """Return the model, which is always loaded; implements `Models.served`."""
        return [self._served]

    def limit_queues(self, waiting: int) -> None:
        """Limit the queue of the model; implements `Models.limit_queues`."""
        loaded = self._served.loaded
        loaded.dispatcher.limit = loaded.max_batch + waiting

    @asynccontextmanager
    async def lease(self, name: str, keep_alive: float | None = None) -> AsyncIterator[Served]:
        """Lend the model if it has this name; implements `Models.lease`."""
        yield self._find(name)

    def unload(self, name: str) -> bool:
        """Return False, because only the model's owner unloads it; implements `Models.unload`."""
        self._find(name)
        return False

    def _find(self, name: str) -> Served:
        if match := named({self._served.name: self._served}, name):
            return match
        raise unknown_model(name, self.listed())


def named(known: Mapping[str, T], name: str) -> T | None:
    """Return the entry with a client's name; "" is the first one, ":latest" is ignored."""
    if not name:
        return next(iter(known.values()), None)
    return known.get(name) or known.get(name.removesuffix(LATEST))


def unknown_model(name: str, listed: Sequence[Listed]) -> ApiError:
    """Return the error for a name that no model has."""
    known = ", ".join(repr(m.name) for m in listed) or "nothing"
    verb = "are" if len(listed) > 1 else "is"
    return ApiError(
        404,
        f"The model {name[:_SHOWN]!r} is not served here; {known} {verb}",
        param="model",
        code="model_not_found",
    )

"""Which models a server has, and who holds them meanwhile."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..load.model import LoadedModel
from .wire.errors import ApiError

_SHOWN = 100  # characters of a name in an error


@dataclass(frozen=True, slots=True)
class Served:
    """A model in memory, under the name that clients use."""

    name: str
    loaded: LoadedModel


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that clients may name, in memory or not."""

    name: str
    context: int | None = None  # tokens; None: known when it is loaded
    created: int = field(default_factory=lambda: int(time.time()))  # seconds since 1970

    def described(self) -> dict[str, Any]:
        """As OpenAI describes a model."""
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "wherry",
            "max_model_len": self.context,  # as vLLM names it
        }


class Models(Protocol):
    """The models of a server."""

    def listed(self) -> Sequence[Listed]:
        """All that clients may name."""

    def served(self) -> Sequence[Served]:
        """Those in memory."""

    def lease(self, name: str) -> AbstractAsyncContextManager[Served]:
        """The model of a name, "" being the default's, in memory for as long as it is held.

        Raises:
            ApiError: 404, no model has this name.
        """


class OneModel:
    """A server of one model, which others own.

    Args:
        loaded: the model.
        name: what clients call it.
    """

    def __init__(self, loaded: LoadedModel, name: str) -> None:
        self._served = Served(name, loaded)
        self._listed = Listed(name, loaded.context)

    def listed(self) -> list[Listed]:
        """See Models."""
        return [self._listed]

    def served(self) -> list[Served]:
        """See Models."""
        return [self._served]

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Served]:
        """See Models."""
        if name not in ("", self._served.name):
            raise unknown_model(name, self.listed())
        yield self._served


def unknown_model(name: str, listed: Sequence[Listed]) -> ApiError:
    """The error for a name that no model has."""
    known = ", ".join(repr(m.name) for m in listed)
    verb = "is" if len(listed) == 1 else "are"
    return ApiError(
        404,
        f"The model {name[:_SHOWN]!r} is not served here; {known} {verb}",
        param="model",
        code="model_not_found",
    )

"""Restricts the models of a server to those of the current request's key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar

from ..models import Listed, Models, Served, named, unknown_model
from .keys import Key

_key: ContextVar[Key | None] = ContextVar("wherry_key", default=None)


def set_key(key: Key) -> None:
    """Set the key of this task and of tasks that it starts."""
    _key.set(key)


class Permitted:
    """See Models. A key that may use a model may use its aliases.

    Args:
        models: all models.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def listed(self) -> Sequence[Listed]:
        """See Models."""
        found, key = self._models.listed(), _key.get()
        if key is None or key.models is None:
            return found
        return [m for m in found if m.name in key.models or m.root in key.models]

    def served(self) -> Sequence[Served]:
        """See Models; unrestricted, for the server's state and metrics."""
        return self._models.served()

    def limit_queues(self, waiting: int) -> None:
        """See Models."""
        self._models.limit_queues(waiting)

    def lease(
        self, name: str, keep_alive: float | None = None
    ) -> AbstractAsyncContextManager[Served]:
        """See Models."""
        return self._models.lease(self._checked(name), keep_alive)

    def unload(self, name: str) -> bool:
        """See Models."""
        return self._models.unload(self._checked(name))

    def _checked(self, name: str) -> str:
        """Return the name if the key may use it."""
        key = _key.get()
        if key is None or key.models is None:
            return name
        default = next((m.name for m in self._models.listed()), "")
        if not named({m.name: m for m in self.listed()}, name or default or "default"):
            raise unknown_model(name or default, self.listed())
        return name or default

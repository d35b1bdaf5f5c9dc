"""Restricts the models of a server to those of the current request's key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar

from ..models import Listed, Models, Served, named, unknown_model
from .keys import Key

_key: ContextVar[Key | None] = ContextVar("wherry_key", default=None)


def set_key(key: Key) -> None:
    """Set the key of the current asyncio task and of tasks that it starts."""
    _key.set(key)


class Permitted:
    """Implements `Models` with only the models that the current request's key may use.

    A key that may use a model may use its aliases.

    Args:
        models: all models.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def listed(self) -> Sequence[Listed]:
        """Return the models that the key may use; implements `Models.listed`."""
        models, key = self._models.listed(), _key.get()
        if key is None or key.models is None:
            return models
        return [m for m in models if m.name in key.models or m.root in key.models]

    def served(self) -> Sequence[Served]:
        """Return the loaded models that the key may use; implements `Models.served`."""
        models, key = self._models.served(), _key.get()
        if key is None or key.models is None:
            return models
        names = self._names()
        return [m for m in models if m.name in names]

    def shows(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the current request's key may see a metric: of its models, and its own.

        A key without a list of models sees all.
        """
        key = _key.get()
        if key is None or key.models is None:
            return True
        own = labels.get("key", key.name) == key.name
        return own and ("model" not in labels or labels["model"] in self._names())

    def _names(self) -> set[str]:
        """Return the names of the models that the key may use, and of those that they stand for."""
        return {name for m in self.listed() for name in (m.name, m.root)}

    def limit_queues(self, waiting: int) -> None:
        """Limit the queue of each model; implements `Models.limit_queues`."""
        self._models.limit_queues(waiting)

    def lease(
        self, name: str, keep_alive: float | None = None
    ) -> AbstractAsyncContextManager[Served]:
        """Lend a model that the key may use; implements `Models.lease`."""
        return self._models.lease(self._checked(name), keep_alive)

    def unload(self, name: str) -> bool:
        """Unload a model that the key may use; implements `Models.unload`."""
        return self._models.unload(self._checked(name))

    def _checked(self, name: str) -> str:
        """Return the name of a model if the key may use it."""
        key = _key.get()
        if key is None or key.models is None:
            return name
        default = next((m.name for m in self._models.listed()), "")
        if not named({m.name: m for m in self.listed()}, name or default or "default"):
            raise unknown_model(name or default, self.listed())
        return name or default

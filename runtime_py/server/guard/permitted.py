"""The models of a server, as far as the key of the request under way may use them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar

from ..models import Listed, Models, Served, unknown_model
from .keys import Key

_key: ContextVar[Key | None] = ContextVar("wherry_key", default=None)


def set_key(key: Key) -> None:
    """For this task, and for those that it starts."""
    _key.set(key)


class Permitted:
    """See Models.

    Args:
        models: all.
    """

    def __init__(self, models: Models) -> None:
        self._models = models

    def listed(self) -> Sequence[Listed]:
        """See Models."""
        found, key = self._models.listed(), _key.get()
        if key is None or key.models is None:
            return found
        return [m for m in found if m.name in key.models]

    def served(self) -> Sequence[Served]:
        """See Models: all of them, for who looks at the server."""
        return self._models.served()

    def lease(self, name: str) -> AbstractAsyncContextManager[Served]:
        """See Models."""
        key = _key.get()
        if key is not None and key.models is not None:
            default = self._models.listed()[0].name if not name else name
            if default not in key.models:
                raise unknown_model(default, self.listed())
        return self._models.lease(name)

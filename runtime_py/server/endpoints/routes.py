"""The interface of a group of paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Routes = dict[tuple[str, str], Callable[..., Any]]  # maps (method, path) to a handler


class Group(Protocol):
    """The interface of a group of paths that belong together."""

    def routes(self) -> Routes:
        """Return the handler of each method and path."""

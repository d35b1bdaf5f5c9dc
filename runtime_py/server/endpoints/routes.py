"""The interface of a group of paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Routes = dict[tuple[str, str], Callable[..., Any]]  # (method, path) -> handler


class Group(Protocol):
    """Paths that belong together."""

    def routes(self) -> Routes:
        """Method and path -> handler."""

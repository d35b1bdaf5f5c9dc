"""The tenant of a request, for stored items."""

from __future__ import annotations

from ...observing.record import current


def tenant() -> str:
    """The name of the current request's key; "" without keys."""
    return current().key or ""

"""Names the tenant of a request, to which its stored items belong."""

from __future__ import annotations

from ...observing.record import current


def tenant() -> str:
    """Return the name of the current request's key; "" if the server has no keys."""
    return current().key or ""

"""Who asks, as far as what is kept is concerned."""

from __future__ import annotations

from ...observing.record import current


def tenant() -> str:
    """The name of the key that the request under way came with; "" where none is asked for."""
    return current().key or ""

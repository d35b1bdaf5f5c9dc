"""Who asks, as far as what is kept is concerned."""

from __future__ import annotations

import hashlib

from starlette.requests import Request


class Tenants:
    """Names of those who ask.

    Args:
        apart: whether clients have keys: what was kept for one is not shown to others.
    """

    def __init__(self, *, apart: bool) -> None:
        self._apart = apart

    def of(self, http: Request) -> str:
        """A name that tells nothing of the key."""
        if not self._apart:
            return ""
        scheme, _, token = http.headers.get("authorization", "").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else http.headers.get("x-api-key", "")
        return hashlib.sha256(key.encode()).hexdigest()

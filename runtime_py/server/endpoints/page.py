"""The chat page of GET /: a single file, which requests nothing from other servers."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cached_property
from pathlib import Path

from starlette.responses import Response

FILE = Path(__file__).parent.parent / "page" / "index.html"


class Page:
    """The chat page's file, which is read at its first request."""

    @cached_property
    def content(self) -> bytes:
        """Return the bytes of the file."""
        return FILE.read_bytes()

    @cached_property
    def policy(self) -> str:
        """Return the Content-Security-Policy: the page's script, and requests to this server."""
        return "; ".join(
            (
                "default-src 'none'",
                f"script-src {_hash_of('script', self.content)}",
                f"style-src {_hash_of('style', self.content)}",
                "connect-src 'self'",
                "img-src data:",
                "manifest-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            )
        )

    def response(self) -> Response:
        """Return the response to a browser."""
        headers = {
            "Content-Security-Policy": self.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
            "Vary": "Accept",
        }
        return Response(self.content, media_type="text/html", headers=headers)


def _hash_of(tag: str, page: bytes) -> str:
    (inside,) = re.findall(rb"<%b>(.*?)</%b>" % (tag.encode(), tag.encode()), page, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside).digest()).decode()}'"

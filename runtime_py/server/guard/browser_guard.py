"""Protects a server without a key from pages in a browser.

A browser lets any page send requests to http://127.0.0.1:8000. It hides the answers from the page,
except under DNS rebinding, where the page's own name points to this machine and `Host` has that
name; and a request itself costs time and memory. So a request must name a known `Host`, and its
`Origin`, the page that sends it, must be allowed. With keys none of this is needed, because pages
do not have them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from ..wire.errors import ApiError

ANY_TYPE = "/api/"  # prefix of paths whose bodies need no content type
# Headers by which a browser is recognized: each browser sends at least one of them.
_BROWSERS = ("origin", "sec-fetch-site", "sec-fetch-mode", "referer")
_NOT_IN_HOSTS = "@/?#\\"  # a URL has them, of which only the part after "@" would be looked at
_SHOWN = 100  # characters of a header that an error message shows


class BrowserGuard:
    """Refuses requests whose Host or Origin is not allowed.

    Args:
        hosts: names of this server besides localhost and any IP address, such as "gpu-box" ("*":
            all).
        origins: allowed pages, such as "https://a.example" ("*": all). Pages from the server's own
            address are always allowed.
    """

    def __init__(self, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        self._hosts = {h.lower().rstrip(".") for h in hosts}
        self._origins = {o.lower().rstrip("/") for o in origins}

    def check(self, headers: Headers, scheme: str) -> None:
        """Check the Host and the Origin of a request.

        Raises:
            ApiError: 403: the Host or Origin is not allowed; the message says which option would
                allow it.
        """
        host = headers.get("host", "")  # HTTP/1.0 clients may send no Host, but browsers always do
        if host and not self._is_own_host(host):
            raise ApiError(
                403,
                f"This server does not know itself as {host[:_SHOWN]!r}: a page may have given "
                "that name to this machine. Start it with --allow-host NAME, or with an API key.",
                code="host_not_allowed",
            )
        origin = headers.get("origin", "").lower()
        if not origin or "*" in self._origins or origin in self._origins:
            return
        if origin == f"{scheme}://{host.lower()}":
            return
        raise ApiError(
            403,
            f"Pages of {origin[:_SHOWN]!r} may not use this server. Start it with --cors ORIGIN.",
            code="origin_not_allowed",
        )

    def _is_own_host(self, host: str) -> bool:
        if "*" in self._hosts:
            return True
        if any(c in host for c in _NOT_IN_HOSTS):
            return False
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if name == "localhost" or name.endswith(".localhost") or name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name)  # an IP address is safe, because DNS cannot change it
        except ValueError:
            return False
        return True


def check_content(method: str, path: str, headers: Headers) -> None:
    """Check that content is JSON, because pages may send other types without a preflight.

    No coding (gzip) is accepted, because it lets one byte become a thousand.

    Ollama's server ignores the content type, so some of its clients send none, or curl's default
    type. These requests are accepted if no header shows a browser.

    Raises:
        ApiError: 415: the content has another type, or is coded.
    """
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise ApiError(
            415,
            f"The body has Content-Encoding {coding[:_SHOWN]!r}; send it without",
            code="unsupported_media_type",
        )
    if path.startswith(ANY_TYPE) and not any(name in headers for name in _BROWSERS):
        return
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if method != "POST" or not has_body:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return
    raise ApiError(
        415,
        f"The body's type is {kind[:_SHOWN]!r}; send the header Content-Type: application/json",
        code="unsupported_media_type",
    )


def wants_page(scope: Scope, headers: Headers) -> bool:
    """Tell whether a browser asks for the page of GET /."""
    asks = scope["path"] == "/" and scope["method"] == "GET"
    return asks and "text/html" in headers.get("accept", "").lower()

"""Which addresses on the network the server may fetch images from.

A request's URL could name a machine that only the server reaches. So a host must be named by
`--media-hosts`, and what its name resolves to must be a public address: a name's owner can point it
anywhere. An address that is itself in the list may be private.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from wherry.errors import UsageError

from ...errors import RequestError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_SHOWN = 60  # characters of a URL that an error message shows


@dataclass(frozen=True, slots=True)
class MediaUrl:
    """An address that may be asked.

    Attributes:
        url: the address.
        host: its host, a name or an IP address.
        secure: whether it is HTTPS.
    """

    url: str
    host: str
    secure: bool


class MediaHosts:
    """The hosts that are named.

    Args:
        hosts: names or IP addresses, each with a port if it is not the scheme's: "example.org",
            "*.example.org" (names that end so), "10.0.0.5:8080"; "*": all public ones.

    Raises:
        UsageError: an entry is no host.
    """

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._hosts = {_entry(host) for host in hosts}

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def checked(self, url: str, param: str) -> MediaUrl:
        """Return an address after a check of its scheme and host.

        Raises:
            RequestError: it may not be asked.
        """
        shown = repr(url[:_SHOWN])
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").rstrip(".").encode("idna").decode() or None
            port = parts.port or _PORTS.get(parts.scheme)
        except (UnicodeError, ValueError):
            host, port = None, None
        if host is None or port is None or parts.username is not None or "\\" in url:
            raise _refused(f"{param}: {shown} is no http:// or https:// address of a host", param)
        if not self._names(host, port, _PORTS[parts.scheme]):
            named = ", ".join(sorted(f"{h}:{p}" if p else h for h, p in self._hosts))
            raise _refused(
                f"{param}: images are fetched only from hosts that the server's option "
                f"--media-hosts names ({named}); this one is of {host}:{port}",
                param,
            )
        return MediaUrl(url, host, parts.scheme == "https")

    def permits(self, host: str, address: str, port: int) -> bool:
        """Return whether an address, to which `host` was resolved, may be connected to."""
        number = ipaddress.ip_address(address.partition("%")[0])
        literal = _literal(host)
        if literal is not None and {(str(literal), port), (str(literal), None)} & self._hosts:
            return literal == number
        return is_public(number)

    def _names(self, host: str, port: int, default: int) -> bool:
        literal = _literal(host)
        names = {str(literal) if literal else host, "*"}
        if literal is None:
            labels = host.split(".")
            names |= {".".join(["*", *labels[i:]]) for i in range(1, len(labels))}
        ports = {port, None} if port == default else {port}
        return any((name, p) in self._hosts for name in names for p in ports)


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public network, also if it is within another."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None:
            return False
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _entry(host: str) -> tuple[str, int | None]:
    text = host.strip().lower()
    literal = _literal(text.strip("[]"))
    if literal is not None:
        return str(literal), None
    try:
        parts = urlsplit(f"//{text}")
        name = (parts.hostname or "").rstrip(".")
        literal, port = _literal(name), parts.port
        name = str(literal) if literal else name.encode("idna").decode()
    except ValueError:  # UnicodeError is one
        name, port = "", None
    if not name or f"//{text}" != f"//{parts.netloc}" or parts.username is not None:
        raise UsageError(
            f"--media-hosts: {host!r} is no host; one is typed as example.org, *.example.org or "
            "10.0.0.5:8080"
        )
    return name, port


def _refused(message: str, param: str) -> RequestError:
    return RequestError(message, param=param, code="unsupported_content")

"""Fetches the images of requests from the hosts that `--media-hosts` names.

An image takes the place of its URL before the request is read, so that all else, stored
conversations, too, has what was fetched. The limits are of one request: its URLs together have ten
seconds and 64 MiB.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

import httpcore2

from wherry.base.data_url import data_url

from ...errors import RequestError
from ..guard.media_hosts import MediaHosts, MediaUrl

_SECONDS = 10.0
_IMAGE, _TOGETHER = 20 << 20, 64 << 20  # bytes
_REDIRECTS = 3
_URLS = 32  # of a request; C++ refuses more images than that
_AT_ONCE = 8  # requests that fetch
_HEADERS = [(b"Accept", b"image/*"), (b"User-Agent", b"wherry")]
_MOVED = (301, 302, 303, 307, 308)

Resolve = Callable[[str, int], Coroutine[Any, Any, Sequence[str]]]
# One place of a request that has a URL: the object, the name of its field, and the field's path.
Place = tuple[dict[str, Any], str, str]


async def resolved(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host."""
    loop = asyncio.get_running_loop()
    rows = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


class MediaFetcher:
    """Replaces the URLs of images by data: URLs.

    Args:
        hosts: the hosts that may be asked; none: URLs stay as they are, and C++ refuses them.
        resolve: returns the addresses of a host.
        seconds: time for the images of one request.
    """

    def __init__(
        self, hosts: MediaHosts, resolve: Resolve = resolved, seconds: float = _SECONDS
    ) -> None:
        self._hosts, self._resolve, self._seconds = hosts, resolve, seconds
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def fetch(self, fields: Any) -> None:
        """Replace the URLs in the JSON of a request, in any protocol.

        Raises:
            RequestError: an address may not be asked, or gave no image.
        """
        if not self._hosts:
            return
        places = [place for place in _places(fields) if "://" in place[0][place[1]][:20]][:_URLS]
        if not places:
            return
        async with self._at_once:
            left, clock = _TOGETHER, asyncio.get_running_loop().time
            end = clock() + self._seconds
            for owner, name, param in places:
                getting = self._get(owner[name], param, min(_IMAGE, left))
                try:
                    data = await asyncio.wait_for(getting, max(0.0, end - clock()))
                except asyncio.TimeoutError:
                    raise _failed(param, f"it took more than {self._seconds:.0f} s") from None
                left -= len(data)
                owner[name] = data_url(data)

    async def _get(self, url: str, param: str, limit: int) -> bytes:
        media = self._hosts.checked(url, param)
        for _ in range(_REDIRECTS + 1):
            answer = await self._answer(media, param, limit)
            if isinstance(answer, bytes):
                return answer
            target = self._hosts.checked(urljoin(media.url, answer), param)
            if media.secure and not target.secure:
                raise _failed(param, "it leads from https:// to http://")
            media = target
        raise _failed(param, f"it leads on more than {_REDIRECTS} times")

    async def _answer(self, media: MediaUrl, param: str, limit: int) -> bytes | str:
        """Return the content of an address, or where it leads."""
        backend = _Permitted(self._hosts, self._resolve)
        try:
            async with (
                httpcore2.AsyncConnectionPool(network_backend=backend) as pool,
                pool.stream("GET", media.url, headers=_HEADERS) as response,
            ):
                headers = {name.lower(): value for name, value in response.headers}
                if response.status in _MOVED and b"location" in headers:
                    return headers[b"location"].decode("latin-1")
                if response.status != 200:
                    raise _failed(param, f"{media.host} answers {response.status}")
                data = bytearray()
                async for block in response.aiter_stream():
                    data += block
                    if len(data) > limit:
                        raise _failed(param, f"it has more than {limit >> 20} MiB")
                return bytes(data)
        except _NotPermitted as e:
            raise _failed(param, f"{media.host} has no public address") from e
        except (OSError, httpcore2.NetworkError, httpcore2.ProtocolError) as e:
            raise _failed(param, f"{media.host} is not reached ({type(e).__name__})") from e


class _NotPermitted(Exception):
    pass


class _Permitted(httpcore2.AsyncNetworkBackend):
    """Connects to the addresses that were checked, so that a name's second answer is not used."""

    def __init__(self, hosts: MediaHosts, resolve: Resolve) -> None:
        self._hosts, self._resolve = hosts, resolve
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, *args: Any, **options: Any
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve a host, check all its addresses, and connect to one; see the base class."""
        addresses = await self._resolve(host, port)
        if not addresses or not all(self._hosts.permits(host, a, port) for a in addresses):
            raise _NotPermitted
        for address in addresses[:-1]:
            try:
                return await self._backend.connect_tcp(address, port, *args, **options)
            except httpcore2.ConnectError:
                continue
        return await self._backend.connect_tcp(addresses[-1], port, *args, **options)


def _places(fields: Any) -> Iterator[Place]:
    """Yield where a request has URLs of images, in the shapes of OpenAI's and Anthropic's APIs."""
    if isinstance(fields, dict):
        for name in ("messages", "input"):
            yield from _within(fields.get(name), name)


def _within(value: Any, path: str) -> Iterator[Place]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _within(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        kind = value.get("type")
        if kind in ("image_url", "input_image"):
            owner = value["image_url"] if isinstance(value.get("image_url"), Mapping) else value
            name = "image_url" if owner is value else "url"
            path = f"{path}.image_url" + ("" if owner is value else ".url")
            yield from _place(owner, name, path)
        elif kind == "image" and isinstance(value.get("source"), dict):
            if value["source"].get("type") == "url":
                yield from _place(value["source"], "url", f"{path}.source.url")
        else:
            for name in ("content", "output"):
                yield from _within(value.get(name), f"{path}.{name}")


def _place(owner: Any, name: str, path: str) -> Iterator[Place]:
    if isinstance(owner.get(name), str):
        yield owner, name, path


def _failed(param: str, reason: str) -> RequestError:
    return RequestError(
        f"{param}: the image could not be fetched: {reason}", param=param, code="invalid_image"
    )

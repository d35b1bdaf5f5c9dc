"""Streams and other responses that are cancelled when their client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wherry.errors import WherryError

from ..observing.record import current
from .deadlines import deadline_exceeded
from .errors import ApiError, api_error, shutting_down
from .framing import Chunk, Framing

_log = logging.getLogger(__name__)
Result = TypeVar("Result")
_LAST_WORD_SECONDS = 1
# Key in the ASGI scope for a function that writes a chunk to the connection if it can at once.
# Middlewares change a response's start alone, so chunks need not pass them.
WRITE_CHUNK = "wherry.write_chunk"
# Seconds without a chunk after which a stream shows that it runs: less than clients and proxies
# wait, of which some give up after 15 or 30 seconds.
KEEP_ALIVE_SECONDS = 10.0


class ClientGone(Exception):
    """The client has closed its connection before it got its response."""


class Chunks(Protocol):
    """The interface of a stream of chunks."""

    async def batch(self) -> Sequence[Chunk]:
        """Return all chunks that are ready, at least one; [] at the end.

        Raises:
            WherryError: the stream failed; the client gets the error.
        """

    def cancel(self) -> None:
        """Abort the stream; idempotent."""


async def while_connected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Await `work`; cancel it when the client disconnects or the deadline passes.

    Raises:
        ClientGone: the client disconnected first.
        ApiError: 504 or 408: the deadline passed first.
    """
    record = current()
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait(
            {task, gone}, timeout=record.seconds_left, return_when=asyncio.FIRST_COMPLETED
        )
        if task.done():
            return task.result()
        raise ClientGone if gone.done() else deadline_exceeded(record)
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class StreamedAnswer(Response):
    """A response that sends the chunks of a stream as they become ready.

    Args:
        stream: the stream of chunks.
        framing: the framing of chunks, and of an error after the first byte, which ends the stream.
        headers: headers of the response.
        held: resources that are closed when the stream ends, such as the model's lease.
    """

    def __init__(
        self,
        stream: Chunks,
        framing: Framing,
        headers: Mapping[str, str],
        resources: AsyncExitStack,
    ) -> None:
        self._stream = stream
        self._framing = framing
        self._resources = resources
        self.media_type = framing.media_type
        self._started = False
        self._busy = False  # whether chunks are being sent
        self._sent_at = time.monotonic()
        self.status_code = 200
        self.background = None
        # X-Accel-Buffering keeps proxies (nginx) from buffering the events.
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **headers})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream to one client; the request is freed in any case."""
        try:
            await while_connected(receive, self._send_all(send, scope.get(WRITE_CHUNK)))
        except (ClientGone, OSError):
            current().error = "client_gone"
        except ApiError as e:  # the request's deadline has passed
            if not self._started:
                raise
            await self._end_with(send, e)
        except asyncio.CancelledError as e:  # the server shuts down and its drain time is over
            if not self._started:
                raise shutting_down() from e
            await self._end_with(send, shutting_down())
        finally:
            self._stream.cancel()
            await self._resources.aclose()

    async def _end_with(self, send: Send, error: ApiError) -> None:
        current().error = error.code
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            end = _send_last(send, self._framing.of_error(error))
            await asyncio.wait_for(end, _LAST_WORD_SECONDS)

    async def _send_all(self, send: Send, write: Callable[[bytes], bool] | None) -> None:
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._started = True
        alive = asyncio.ensure_future(self._keep_alive(send))
        try:
            while chunks := await self._stream.batch():
                self._busy = True
                data = b"".join(map(self._framing.chunk, chunks))
                if write is None or not write(data):
                    await _send(send, data)
                self._busy, self._sent_at = False, time.monotonic()
            last = self._framing.last
        except WherryError as e:
            record, known = current(), api_error(e)
            level = logging.ERROR if known.status_code >= 500 else logging.INFO
            _log.log(level, "%s: a stream failed: %s", record.id, e)
            record.error = known.code
            last = self._framing.of_error(known)
        finally:
            alive.cancel()
        await _send_last(send, last)

    async def _keep_alive(self, send: Send) -> None:
        """Send what shows that the stream runs, whenever it has no chunk for a while."""
        while self._framing.keep_alive is not None:
            left = self._sent_at + KEEP_ALIVE_SECONDS - time.monotonic()
            if left > 0:
                await asyncio.sleep(left)
                continue
            # chunks that wait to be sent come first, because they have their numbers already
            if not self._busy:
                with contextlib.suppress(OSError):  # the sender of chunks reports it
                    await _send(send, self._framing.keep_alive())
            self._sent_at = time.monotonic()


class FullAnswer(Response):
    """A response that sends blocks of complete JSON and frees each as it is sent.

    Args:
        blocks: blocks of the JSON text, in order.
        headers: headers of the response.
    """

    def __init__(self, blocks: list[bytes], headers: Mapping[str, str]) -> None:
        self._blocks = blocks
        self.media_type = "application/json"
        self.status_code = 200
        self.background = None
        self.init_headers({"Content-Length": str(sum(map(len, blocks))), **headers})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the blocks to one client."""
        headers = self.raw_headers
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._blocks.reverse()
        while self._blocks:
            block = self._blocks.pop()
            await _send(send, block, more=bool(self._blocks))


async def _send_last(send: Send, data: bytes) -> None:
    await _send(send, data)
    await _send(send, b"", more=False)


async def _send(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})

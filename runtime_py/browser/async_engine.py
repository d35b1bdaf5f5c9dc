"""AsyncMLCEngine in a browser. Cancelling a task aborts its request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

from ..answers import ChatCompletion, ChatCompletionChunk, Completion, Shape
from ..core.interface import CoreStats
from ..shaped import shaped, stats_of
from ..vector_answers import EmbeddingAnswer
from .bridge import Bridge, Progress
from .options import split

FullResponse = TypeVar("FullResponse", bound=Shape)
Chunk = TypeVar("Chunk", bound=Shape)


class Loading:
    """A model whose load may still run; requests await the end of the load."""

    def __init__(
        self,
        model: str | Path | Sequence[str],
        limits: dict[str, Any],
        progress: Progress | None,
    ) -> None:
        self.bridge = Bridge()
        self._loaded = asyncio.ensure_future(self.bridge.load(model, limits, progress))

    async def ready(self) -> Bridge:
        """Await the load and return the bridge.

        Cancelling a waiting request does not stop the load.
        """
        await asyncio.shield(self._loaded)
        return self.bridge

    async def close(self) -> None:
        """Cancel the load, or abort all requests and free the model; idempotent."""
        self._loaded.cancel()
        await asyncio.gather(self._loaded, return_exceptions=True)
        await self.bridge.dispose()


class AsyncStream(Generic[Chunk]):
    """An asynchronous iterator over the chunks of a response.

    Closing the stream, or leaving its `async with`, frees the request.
    """

    def __init__(self, bridge: Bridge, request: int, kind: type[Chunk]) -> None:
        self._bridge = bridge
        self._request = request
        self._kind = kind

    def __aiter__(self) -> AsyncStream[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        try:
            chunk = await self._bridge.next(self._request)
        # asyncio.CancelledError is no Exception, but must free the request as well
        except BaseException:
            self.cancel()
            raise
        if chunk is None:
            raise StopAsyncIteration
        return shaped(self._kind, chunk)

    async def __aenter__(self) -> AsyncStream[Chunk]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def __del__(self) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._bridge.end(self._request)

    async def close(self) -> None:
        """Abort the request; the same as `cancel`, under the name in OpenAI's client."""
        self.cancel()


class Endpoint(Generic[FullResponse, Chunk]):
    """An endpoint of the engine in a browser: its `create` runs requests of one kind."""

    def __init__(
        self, loading: Loading, name: str, response: type[FullResponse], chunk: type[Chunk]
    ) -> None:
        self._loading = loading
        self._name = name
        self._response = response
        self._chunk = chunk

    @overload
    async def create(self, *, stream: Literal[True], **fields: Any) -> AsyncStream[Chunk]: ...
    @overload
    async def create(
        self, *, stream: Literal[False] | None = ..., **fields: Any
    ) -> FullResponse: ...
    async def create(
        self, *, stream: bool | None = None, **fields: Any
    ) -> FullResponse | AsyncStream[Chunk]:
        """Answer a request; the arguments are the request fields of the npm package.

        Returns:
            The answer, or with `stream=True` an asynchronous iterator of chunks.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
        """
        if not stream:
            return await _answered(self._loading, self._name, self._response, fields)
        bridge = await self._loading.ready()
        request = bridge.next_id()
        try:
            await bridge.open(request, self._name, _given(fields) | {"stream": True})
            return AsyncStream(bridge, request, self._chunk)
        # asyncio.CancelledError is no Exception, but must free the request as well
        except BaseException:
            bridge.end(request)
            raise


class AsyncEmbeddings:
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    def __init__(self, loading: Loading) -> None:
        self._loading = loading

    async def create(self, **fields: Any) -> EmbeddingAnswer:
        """Embed each input; the arguments are the fields of EmbeddingRequest.

        Raises:
            RequestError: an argument is wrong, or the model has no embeddings.
        """
        return await _answered(self._loading, "embedding", EmbeddingAnswer, fields)


async def _answered(
    loading: Loading, endpoint: str, kind: type[FullResponse], fields: dict[str, Any]
) -> FullResponse:
    """Await a whole response of an endpoint."""
    bridge = await loading.ready()
    request = bridge.next_id()
    try:
        return shaped(kind, await bridge.ask(request, endpoint, _given(fields)))
    # asyncio.CancelledError is no Exception, but must free the request as well
    except BaseException:
        bridge.end(request)
        raise


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def chat_endpoint(loading: Loading) -> Endpoint[ChatCompletion, ChatCompletionChunk]:
    """Return the endpoint `chat.completions`."""
    return Endpoint(loading, "chat", ChatCompletion, ChatCompletionChunk)


def completion_endpoint(loading: Loading) -> Endpoint[Completion, Completion]:
    """Return the endpoint `completions`."""
    return Endpoint(loading, "completion", Completion, Completion)


class AsyncChat:
    """The namespace `engine.chat`, as in OpenAI's client."""

    def __init__(self, loading: Loading) -> None:
        self.completions = chat_endpoint(loading)


class AsyncMLCEngine:
    """A language model in this browser, for asyncio.

    The load starts at once; `async with` and every request await it.

    Args:
        model: the address of a folder that was compiled with --target webgpu or wasm; a list of
            addresses, of which the first that this device can run is loaded; or a folder of
            Python's own file system.
        options: context, kv_tokens, max_batch, max_drafts, max_slowdown, prefill_chunk,
            prefix_cache, progress, threads, as in LoadOptions.
    """

    def __init__(self, model: str | Path | Sequence[str], **options: Any) -> None:
        self._loading = Loading(model, *split(options))
        self.chat = AsyncChat(self._loading)
        self.completions = completion_endpoint(self._loading)
        self.embeddings = AsyncEmbeddings(self._loading)

    async def stats(self) -> CoreStats:
        """Return the core's counters: steps, tokens, pages."""
        return stats_of(await (await self._loading.ready()).stats())

    async def close(self) -> None:
        """End all requests and free the model; idempotent."""
        await self._loading.close()

    async def __aenter__(self) -> AsyncMLCEngine:
        try:
            await self._loading.ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

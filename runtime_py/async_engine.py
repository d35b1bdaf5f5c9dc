"""AsyncMLCEngine: the interface of MLCEngine for asyncio.

Cancelling a task aborts its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, TypeVar, overload

from typing_extensions import Unpack

from .answers import ChatCompletion, ChatCompletionChunk, Completion, Shape
from .arguments import ChatArguments, CompletionArguments, EmbeddingArguments
from .base_engine import BaseEngine, BaseStream, shaper
from .caller import Caller
from .core.interface import Event, Job, SamplingParams
from .host.request import HostRequest, Task, of_arguments
from .host.running import Running
from .host.sinks import AsyncSink
from .load.model import LoadedModel
from .vector_answers import EmbeddingAnswer

FullResponse = TypeVar("FullResponse", bound=Shape)
Record = TypeVar("Record", bound=Shape)
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


class AsyncStream(BaseStream[Chunk, AsyncSink]):
    """An asynchronous iterator over the chunks of a response.

    Closing the stream, or leaving its `async with`, frees the request.
    """

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        if not self._ready:
            self._ready.extend(await self.batch())
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    async def batch(self) -> list[Chunk]:
        """Return all chunks that are ready, at least one; [] at the end of the stream."""
        while not self._ready and not self._running.done:
            try:
                self._running.check()
                self._add(self._running.take(await self._sink.take()))
            # asyncio.CancelledError is no Exception, but must free the request as well
            except BaseException:
                self.cancel()
                raise
        chunks = list(self._ready)
        self._ready.clear()
        return chunks

    async def __aenter__(self) -> AsyncStream[Chunk]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def cancel(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._end()

    async def close(self) -> None:
        """Abort the request; the same as `cancel`, under the name in OpenAI's client."""
        self.cancel()


async def _in_thread(
    make: Callable[[], Result], undo: Callable[[Result], object], executor: Executor | None = None
) -> Result:
    """Run `make` on a thread; if the caller is cancelled meanwhile, `undo` its result."""
    future = asyncio.get_running_loop().run_in_executor(executor, make)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        future.add_done_callback(lambda f: None if _has_failed(f) else undo(f.result()))
        raise


async def attended(
    work: Callable[[Caller], Result],
    executor: Executor | None = None,
    *,
    undo: Callable[[Result], object] = lambda _: None,
) -> Result:
    """Run `work` on a thread; it gets a Caller, which knows whether the client still waits.

    Args:
        work: is not started for a caller that is gone.
        executor: runs the thread; None: the loop's executor.
        undo: called with the result if the caller has gone meanwhile.
    """
    caller = Caller()

    def begun() -> Result:
        caller.check()
        return work(caller)

    try:
        return await _in_thread(begun, undo, executor)
    finally:
        caller.gone = True  # the thread stops unfinished work when it sees that the caller is gone


def _has_failed(future: asyncio.Future[Any]) -> bool:
    return future.cancelled() or future.exception() is not None


async def begin(
    loaded: LoadedModel,
    make: Callable[[Caller], HostRequest],
    executor: Executor | None = None,
) -> tuple[Running, AsyncSink, list[bytes]]:
    """Plan and submit a request on a thread: tokenizing and the core's lock may take a while.

    Args:
        loaded: the model.
        make: makes the request; long work in it checks the Caller that it gets.
        executor: runs the thread; None: the loop's executor.

    Returns:
        The request, which has been opened, the receiver of its messages, and the JSON of its first
        chunks.

    Raises:
        RequestError: the request cannot be served.
        BusyError: the queue is full, or that of grammars.
    """
    sink = AsyncSink()
    running = await attended(
        lambda caller: loaded.start(make(caller), sink, caller), executor, undo=Running.close
    )
    ready: list[bytes] = []
    try:
        while running.about is None:
            ready += running.take(await sink.take())
    except BaseException:  # asyncio.CancelledError as well
        running.close()
        raise
    return running, sink, ready


async def collect(running: Running, sink: AsyncSink, ready: list[bytes]) -> bytes:
    """Await the JSON of a whole response; a cancellation aborts its request."""
    try:
        while not running.done:
            running.check()
            ready += running.take(await sink.take())
    finally:
        running.close()
    return ready[-1]


class _Endpoint:
    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    async def _stream(
        self, task: Task, fields: dict[str, Any], kind: type[Record]
    ) -> AsyncStream[Record]:
        request = of_arguments(task, {**fields, "stream": True})
        running, sink, ready = await begin(self._model, lambda _: request)
        return AsyncStream(running, sink, (), ready, shaper(kind))

    async def _answer(
        self, task: Task, fields: dict[str, Any], kind: type[FullResponse]
    ) -> FullResponse:
        request = of_arguments(task, fields)
        data = await collect(*await begin(self._model, lambda _: request))
        return shaper(kind)(data)[0]


class AsyncChatCompletions(_Endpoint):
    """The endpoint `engine.chat.completions`, with the interface of OpenAI's client."""

    @overload
    async def create(
        self, *, stream: Literal[True], **fields: Unpack[ChatArguments]
    ) -> AsyncStream[ChatCompletionChunk]: ...
    @overload
    async def create(
        self, *, stream: Literal[False] | None = ..., **fields: Unpack[ChatArguments]
    ) -> ChatCompletion: ...
    async def create(
        self, *, stream: bool | None = None, **fields: Unpack[ChatArguments]
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        """Answer messages.

        Arguments, results and errors as in ChatCompletions.create of MLCEngine.
        """
        if stream:
            return await self._stream("chat", {**fields}, ChatCompletionChunk)
        return await self._answer("chat", {**fields}, ChatCompletion)


class AsyncChat:
    """The namespace `engine.chat`, as in OpenAI's client."""

    def __init__(self, model: LoadedModel) -> None:
        self.completions = AsyncChatCompletions(model)


class AsyncCompletions(_Endpoint):
    """The endpoint `engine.completions`, with the interface of OpenAI's client."""

    @overload
    async def create(
        self, *, stream: Literal[True], **fields: Unpack[CompletionArguments]
    ) -> AsyncStream[Completion]: ...
    @overload
    async def create(
        self, *, stream: Literal[False] | None = ..., **fields: Unpack[CompletionArguments]
    ) -> Completion: ...
    async def create(
        self, *, stream: bool | None = None, **fields: Unpack[CompletionArguments]
    ) -> Completion | AsyncStream[Completion]:
        """Continue prompts; arguments, results and errors as in Completions.create of MLCEngine."""
        if stream:
            return await self._stream("completion", {**fields}, Completion)
        return await self._answer("completion", {**fields}, Completion)


class AsyncEmbeddings(_Endpoint):
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    async def create(self, **fields: Unpack[EmbeddingArguments]) -> EmbeddingAnswer:
        """Embed each input; arguments, results and errors as in Embeddings.create of MLCEngine."""
        return await self._answer("embed", {**fields}, EmbeddingAnswer)


class AsyncMLCEngine(BaseEngine):
    """A language model on this machine, for asyncio; the arguments are those of MLCEngine.

    Loading blocks, as in MLCEngine.
    """

    def _attach(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.chat = AsyncChat(loaded)
        self.completions = AsyncCompletions(loaded)
        self.embeddings = AsyncEmbeddings(loaded)

    async def generate(
        self, token_ids: Sequence[int], params: SamplingParams
    ) -> AsyncIterator[Event]:
        """Yield the events of one request on token ids.

        Arguments, errors as in MLCEngine.generate.
        """
        job = Job(0, self.loaded.checked(token_ids, params), params)
        sink, dispatcher = AsyncSink(), self.loaded.dispatcher
        request = await _in_thread(lambda: dispatcher.submit(job, sink), dispatcher.abort)
        try:
            while True:
                for event in await sink.take():
                    yield event
                    if event.finish:
                        return
        finally:
            dispatcher.abort(request)

    async def close(self) -> None:
        """End all requests and free the model; idempotent."""
        await asyncio.to_thread(self.loaded.close)

    async def __aenter__(self) -> AsyncMLCEngine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

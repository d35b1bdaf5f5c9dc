"""AsyncMLCEngine: the interface of MLCEngine for asyncio.

Cancelling a task aborts its request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Literal, TypeVar, overload

from typing_extensions import Unpack

from .answer.generation import Generation
from .answer.reply import Collected, Reply, Streaming
from .answer.shapes import ChatCompletion, ChatCompletionChunk, Completion
from .answer.vector_shapes import EmbeddingAnswer
from .answer.vectors import Answer, VectorPlan
from .base_engine import BaseEngine, BaseStream
from .caller import Caller
from .core.batch import Batch
from .core.dispatcher import AsyncSink
from .core.interface import Event, Job, SamplingParams
from .load.model import LoadedModel, parse_chat, parse_completion, parse_embedding
from .request.plan import RequestPlan
from .shapes.arguments import ChatArguments, CompletionArguments, EmbeddingArguments

Whole = TypeVar("Whole")
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
        while not self._ready and not self._generation.done:
            try:
                deltas = self._generation.push(await self._sink.take())
            # asyncio.CancelledError is no Exception, but must free the request as well
            except BaseException:
                self.cancel()
                raise
            self._ready.extend(self._streaming.chunks(deltas))
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
    make: Callable[[Caller], tuple[RequestPlan, Reply[Whole, Chunk]]],
    executor: Executor | None = None,
) -> tuple[Generation, AsyncSink, Reply[Whole, Chunk]]:
    """Plan and submit a request on a thread: tokenizing and the core's lock may take a while.

    Args:
        loaded: the model.
        make: makes the plan; long work in it checks the Caller that it gets.
        executor: runs the thread; None: the loop's executor.

    Raises:
        RequestError: the request cannot be served.
        BusyError: the queue is full, or that of grammars.
    """
    sink = AsyncSink()

    def submit(plan: RequestPlan) -> Generation:
        return Generation(plan, loaded.tokenizer, loaded.dispatcher, sink, soon=True)

    def planned(
        caller: Caller,
    ) -> tuple[RequestPlan, Generation | None, Reply[Whole, Chunk]]:
        plan, reply = make(caller)
        caller.check()
        return plan, None if plan.constraint else submit(plan), reply

    def undo(made: tuple[RequestPlan, Generation | None, Reply[Whole, Chunk]]) -> None:
        if made[1] is not None:
            made[1].close()

    plan, generation, reply = await attended(planned, executor, undo=undo)
    if generation is None:
        # No thread that plain requests need waits for a grammar.
        constraint = await asyncio.wrap_future(loaded.audit(plan))
        compiling = await attended(
            lambda _: loaded.begin_grammar(plan, constraint), undo=lambda future: future.cancel()
        )
        grammar = await asyncio.wrap_future(compiling)
        held = plan.held_to(grammar)
        generation = await attended(lambda _: submit(held), undo=lambda made: made.close())
    return generation, sink, reply


async def collect(
    generation: Generation, sink: AsyncSink, reply: Reply[Whole, Chunk]
) -> Collected[Whole, Chunk]:
    """Await a whole response; a cancellation aborts its request.

    The caller calls `whole()` on a thread if the response may be long, because that takes long.
    """
    answer = Collected(generation, reply)
    try:
        while not generation.done:
            answer.add(generation.push(await sink.take()))
    finally:
        generation.close()
    return answer


async def gather(
    loaded: LoadedModel,
    make: Callable[[Caller], VectorPlan[Answer]],
    executor: Executor | None = None,
) -> Answer:
    """Plan a request for embeddings or scores on a thread, submit it, and await the response.

    Args:
        loaded: the model.
        make: makes the plan; long work in it checks the Caller that it gets.
        executor: runs the thread; None: the loop's executor.

    Raises:
        RequestError: the request cannot be served.
        BusyError: the queue is full.
    """
    sink, caller = AsyncSink(), Caller()

    def submit() -> tuple[VectorPlan[Answer], Batch]:
        caller.check()
        plan = make(caller)
        caller.check()
        return plan, loaded.vectors.begin(plan, sink, soon=True)

    try:
        plan, batch = await _in_thread(submit, lambda made: made[1].close(), executor)
    finally:
        caller.gone = True  # the thread stops unfinished work when it sees that the caller is gone
    try:
        while not batch.done:
            batch.push(await sink.take())
            if batch.wants_more:
                await _in_thread(batch.refill, lambda _: batch.close())
        return await asyncio.to_thread(plan.whole, batch.results)
    finally:
        batch.close()


class _Endpoint:
    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    async def _run(
        self, make: Callable[[Caller], tuple[RequestPlan, Reply[Whole, Chunk]]], stream: bool | None
    ) -> Whole | AsyncStream[Chunk]:
        generation, sink, reply = await begin(self._model, make)
        if stream:
            return AsyncStream(generation, sink, Streaming(generation, reply))
        return (await collect(generation, sink, reply)).whole()


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
        request = parse_chat({**fields, "stream": stream})
        return await self._run(lambda caller: self._model.chat(request, caller), stream)


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
        request = parse_completion({**fields, "stream": stream})
        return await self._run(lambda caller: self._model.completion(request, caller), stream)


class AsyncEmbeddings(_Endpoint):
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    async def create(self, **fields: Unpack[EmbeddingArguments]) -> EmbeddingAnswer:
        """Embed each input; arguments, results and errors as in Embeddings.create of MLCEngine."""
        request = parse_embedding(fields)
        vectors = self._model.vectors
        return await gather(self._model, lambda caller: vectors.embedding(request, caller))


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
        prompt = list(token_ids)
        self.loaded.planner.check(prompt, params)
        sink, dispatcher = AsyncSink(), self.loaded.dispatcher
        ids = await _in_thread(
            lambda: dispatcher.submit([Job(0, prompt, params)], sink), dispatcher.abort_soon
        )
        try:
            while True:
                for event in await sink.take():
                    yield event
                    if event.finish:
                        return
        finally:
            dispatcher.abort_soon(ids)

    async def close(self) -> None:
        """End all requests and free the model; idempotent."""
        await asyncio.to_thread(self.loaded.close)

    async def __aenter__(self) -> AsyncMLCEngine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

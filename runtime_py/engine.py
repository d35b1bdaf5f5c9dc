"""MLCEngine: the synchronous engine, with the interface of OpenAI's client."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from typing_extensions import Unpack

from .answers import ChatCompletion, ChatCompletionChunk, Completion, Shape
from .arguments import ChatArguments, CompletionArguments, EmbeddingArguments
from .base_engine import BaseEngine, BaseStream, shaper
from .caller import Caller
from .core.interface import Event, Job, SamplingParams
from .host.request import Task, of_arguments
from .host.running import Running
from .host.sinks import BlockingSink
from .load.model import LoadedModel
from .vector_answers import EmbeddingAnswer

FullResponse = TypeVar("FullResponse", bound=Shape)
Chunk = TypeVar("Chunk", bound=Shape)


class Stream(BaseStream[Chunk, BlockingSink]):
    """An iterator over the chunks of a response.

    Closing the stream, or leaving its `with`, frees the request.
    """

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self._ready:
            if self._running.done:
                raise StopIteration
            try:
                self._running.check()
                self._add(self._running.take(self._sink.take()))
            # KeyboardInterrupt (Ctrl-C) is no Exception, but must free the request as well
            except BaseException:
                self.close()
                raise
        return self._ready.popleft()

    def __enter__(self) -> Stream[Chunk]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._end()


_STARTS = ThreadPoolExecutor(thread_name_prefix="wherry-start")


def _close(future: Future[Running]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()


class _Endpoint:
    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def _start(self, task: Task, fields: dict[str, Any]) -> tuple[Running, BlockingSink]:
        request, sink, caller = of_arguments(task, fields), BlockingSink(), Caller()
        if threading.current_thread() is not threading.main_thread():
            return self._model.start(request, sink, caller), sink
        # Ctrl-C raises in the main thread, and would be lost in a callback of C++.
        future = _STARTS.submit(self._model.start, request, sink, caller)
        try:
            return future.result(), sink
        except BaseException:
            caller.gone = True
            future.add_done_callback(_close)
            raise

    def _stream(self, task: Task, fields: dict[str, Any], kind: type[Chunk]) -> Stream[Chunk]:
        running, sink = self._start(task, {**fields, "stream": True})
        ready: list[bytes] = []
        try:
            while running.about is None:
                ready += running.take(sink.take())
        except BaseException:  # KeyboardInterrupt (Ctrl-C) as well
            running.close()
            raise
        return Stream(running, sink, (), ready, shaper(kind))

    def _answer(self, task: Task, fields: dict[str, Any], kind: type[FullResponse]) -> FullResponse:
        running, sink = self._start(task, fields)
        data: list[bytes] = []
        try:
            while not running.done:
                running.check()
                data += running.take(sink.take())
        finally:  # runs on KeyboardInterrupt (Ctrl-C) as well
            running.close()
        return shaper(kind)(data[-1])[0]


class ChatCompletions(_Endpoint):
    """The endpoint `engine.chat.completions`, with the interface of OpenAI's client."""

    @overload
    def create(
        self, *, stream: Literal[True], **fields: Unpack[ChatArguments]
    ) -> Stream[ChatCompletionChunk]: ...
    @overload
    def create(
        self, *, stream: Literal[False] | None = ..., **fields: Unpack[ChatArguments]
    ) -> ChatCompletion: ...
    def create(
        self, *, stream: bool | None = None, **fields: Unpack[ChatArguments]
    ) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """Answer messages; the arguments are those of OpenAI's client, and more (ChatArguments).

        The url of an image may also be a pathlib.Path, the bytes of a file, an image of Pillow, or
        an array uint8 [height, width], [height, width, 3] or [height, width, 4].

        Returns:
            The answer, or with `stream=True` an iterator of chunks.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
            UsageError: the file of an image cannot be read, or an array has another form.
        """
        if stream:
            return self._stream("chat", {**fields}, ChatCompletionChunk)
        return self._answer("chat", {**fields}, ChatCompletion)


class Chat:
    """The namespace `engine.chat`, as in OpenAI's client."""

    def __init__(self, model: LoadedModel) -> None:
        self.completions = ChatCompletions(model)


class Completions(_Endpoint):
    """The endpoint `engine.completions`, with the interface of OpenAI's client."""

    @overload
    def create(
        self, *, stream: Literal[True], **fields: Unpack[CompletionArguments]
    ) -> Stream[Completion]: ...
    @overload
    def create(
        self, *, stream: Literal[False] | None = ..., **fields: Unpack[CompletionArguments]
    ) -> Completion: ...
    def create(
        self, *, stream: bool | None = None, **fields: Unpack[CompletionArguments]
    ) -> Completion | Stream[Completion]:
        """Continue prompts; the arguments are in CompletionArguments.

        Returns:
            The answer, or with `stream=True` an iterator of its pieces.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
        """
        if stream:
            return self._stream("completion", {**fields}, Completion)
        return self._answer("completion", {**fields}, Completion)


class Embeddings(_Endpoint):
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    def create(self, **fields: Unpack[EmbeddingArguments]) -> EmbeddingAnswer:
        """Embed each input; the arguments are in EmbeddingArguments.

        Raises:
            RequestError: an argument is wrong, or the model has no embeddings.
        """
        return self._answer("embed", {**fields}, EmbeddingAnswer)


class MLCEngine(BaseEngine):
    """A language model on this machine.

    Args:
        model: a compiled folder, or a MODEL of `wherry compile`, which is compiled once.
        options: fields of LoadOptions, such as target, quant, context, threads.

    Raises:
        ArtifactError: the compiled folder is damaged, or does not fit this machine.
        ResourceError: there is not enough memory.
        UsageError: an option is out of range.
    """

    def _attach(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.chat = Chat(loaded)
        self.completions = Completions(loaded)
        self.embeddings = Embeddings(loaded)

    def generate(self, token_ids: Sequence[int], params: SamplingParams) -> Iterator[Event]:
        """Yield the events of one request on token ids; the last event has a `finish`.

        Closing the iterator aborts the request.

        Raises:
            RequestError: the prompt is empty, too long, or holds an unknown id.
        """
        job = Job(0, self.loaded.checked(token_ids, params), params)
        sink = BlockingSink()
        request = self.loaded.dispatcher.submit(job, sink)
        try:
            while True:
                for event in sink.take():
                    yield event
                    if event.finish:
                        return
        finally:
            self.loaded.dispatcher.abort(request)

    def close(self) -> None:
        """End all requests and free the model; idempotent."""
        self.loaded.close()

    def __enter__(self) -> MLCEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

"""MLCEngine: the synchronous engine, with the interface of OpenAI's client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Literal, TypeVar, overload

from typing_extensions import Unpack

from .answer.generation import Generation
from .answer.reply import Collected, Reply, Streaming
from .answer.shapes import ChatCompletion, ChatCompletionChunk, Completion
from .answer.vector_shapes import EmbeddingAnswer
from .base_engine import BaseEngine, BaseStream
from .caller import Caller
from .core.dispatcher import BlockingSink
from .core.interface import Event, Job, SamplingParams
from .load.model import LoadedModel, parse_chat, parse_completion, parse_embedding
from .request.plan import RequestPlan
from .shapes.arguments import ChatArguments, CompletionArguments, EmbeddingArguments

Whole = TypeVar("Whole")
Chunk = TypeVar("Chunk")


class Stream(BaseStream[Chunk, BlockingSink]):
    """An iterator over the chunks of a response.

    Closing the stream, or leaving its `with`, frees the request.
    """

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self._ready:
            if self._generation.done:
                raise StopIteration
            try:
                deltas = self._generation.push(self._sink.take())
            # KeyboardInterrupt (Ctrl-C) is no Exception, but must free the request as well
            except BaseException:
                self.close()
                raise
            self._ready.extend(self._streaming.chunks(deltas))
        return self._ready.popleft()

    def __enter__(self) -> Stream[Chunk]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._end()


class _Endpoint:
    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def _run(
        self, plan: RequestPlan, reply: Reply[Whole, Chunk], stream: bool | None
    ) -> Whole | Stream[Chunk]:
        sink = BlockingSink()
        plan = self._model.constrained(plan)
        generation = Generation(plan, self._model.tokenizer, self._model.dispatcher, sink)
        if stream:
            return Stream(generation, sink, Streaming(generation, reply))
        answer = Collected(generation, reply)
        try:
            while not generation.done:
                answer.add(generation.push(sink.take()))
        finally:  # runs on KeyboardInterrupt (Ctrl-C) as well
            generation.close()
        return answer.whole()


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

        Returns:
            The answer, or with `stream=True` an iterator of chunks.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
        """
        request = parse_chat({**fields, "stream": stream})
        return self._run(*self._model.chat(request), stream)


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
        request = parse_completion({**fields, "stream": stream})
        return self._run(*self._model.completion(request), stream)


class Embeddings(_Endpoint):
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    def create(self, **fields: Unpack[EmbeddingArguments]) -> EmbeddingAnswer:
        """Embed each input; the arguments are in EmbeddingArguments.

        Raises:
            RequestError: an argument is wrong, or the model has no embeddings.
        """
        vectors, sink = self._model.vectors, BlockingSink()
        plan = vectors.embedding(parse_embedding(fields), Caller())
        batch = vectors.begin(plan, sink, soon=False)
        try:
            while not batch.done:
                batch.push(sink.take())
                batch.refill()
            return plan.whole(batch.results)
        finally:  # runs on KeyboardInterrupt (Ctrl-C) as well
            batch.close()


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
        prompt = list(token_ids)
        self.loaded.planner.check(prompt, params)
        sink = BlockingSink()
        ids = self.loaded.dispatcher.submit([Job(0, prompt, params)], sink)
        try:
            while True:
                for event in sink.take():
                    yield event
                    if event.finish:
                        return
        finally:
            self.loaded.dispatcher.abort(ids)

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

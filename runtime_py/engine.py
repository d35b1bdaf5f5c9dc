"""MLCEngine: the synchronous engine, with the surface of OpenAI's client."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, overload

from .core import CoreStats, Event, SamplingParams
from .dispatcher import BlockingSink
from .generation import Generation
from .loaded_model import LoadedModel, parse_chat, parse_completion
from .plan import Job, Plan
from .protocol import ChatCompletion, ChatCompletionChunk, Completion
from .reply import Collected, Reply, Streaming

Whole = TypeVar("Whole")
Chunk = TypeVar("Chunk")


class Stream(Generic[Chunk]):
    """Chunks of an answer, as they come. Closing it, or leaving its `with`, frees the request."""

    def __init__(
        self, generation: Generation, sink: BlockingSink, streaming: Streaming[Any, Chunk]
    ) -> None:
        self._generation = generation
        self._sink = sink
        self._streaming = streaming
        self._ready = deque(streaming.opening())

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self._ready:
            if self._generation.done:
                raise StopIteration
            try:
                deltas = self._generation.push(self._sink.take())
            except BaseException:  # Ctrl-C too
                self.close()
                raise
            self._ready.extend(self._streaming.chunks(deltas))
        return self._ready.popleft()

    def __enter__(self) -> Stream[Chunk]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._generation.close()

    def close(self) -> None:
        """Abort what has not ended; idempotent."""
        self._generation.close()
        self._ready.clear()


class _Endpoint:
    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def _run(
        self, plan: Plan, reply: Reply[Whole, Chunk], stream: bool | None
    ) -> Whole | Stream[Chunk]:
        sink = BlockingSink()
        generation = Generation(plan, self._model.tokenizer, self._model.dispatcher, sink)
        if stream:
            return Stream(generation, sink, Streaming(generation, reply))
        answer = Collected(generation, reply)
        try:
            while not generation.done:
                answer.add(generation.push(sink.take()))
        finally:  # Ctrl-C too
            generation.close()
        return answer.whole()


class ChatCompletions(_Endpoint):
    """`engine.chat.completions`."""

    @overload
    def create(self, *, stream: Literal[True], **fields: Any) -> Stream[ChatCompletionChunk]: ...
    @overload
    def create(self, *, stream: Literal[False] | None = ..., **fields: Any) -> ChatCompletion: ...
    def create(
        self, *, stream: bool | None = None, **fields: Any
    ) -> ChatCompletion | Stream[ChatCompletionChunk]:
        """Answer messages; the arguments are the fields of ChatRequest, as in OpenAI's client.

        Returns:
            The answer, or with `stream=True` an iterator of chunks.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
        """
        request = parse_chat(fields)
        return self._run(*self._model.chat(request), stream)


class Chat:
    """`engine.chat`."""

    def __init__(self, model: LoadedModel) -> None:
        self.completions = ChatCompletions(model)


class Completions(_Endpoint):
    """`engine.completions`."""

    @overload
    def create(self, *, stream: Literal[True], **fields: Any) -> Stream[Completion]: ...
    @overload
    def create(self, *, stream: Literal[False] | None = ..., **fields: Any) -> Completion: ...
    def create(
        self, *, stream: bool | None = None, **fields: Any
    ) -> Completion | Stream[Completion]:
        """Continue prompts; the arguments are the fields of CompletionRequest.

        Returns:
            The answer, or with `stream=True` an iterator of its pieces.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
        """
        request = parse_completion(fields)
        return self._run(*self._model.completion(request), stream)


class MLCEngine:
    """A language model on this machine.

    Args:
        model: a compiled folder, or what `wherry compile` accepts: it is compiled, once.
        target: what to compile for; "auto" is this machine.
        quant: scheme of the weights, None for the default.
        kv_dtype: how keys and values are kept: "float32", "float16", "int8"; "auto": what suits
            the target.
        activations: what 4- and 8-bit weights are multiplied by: "int8" (CPUs: rounded, with a
            scale for each 32), "float"; "auto": what suits the target.
        device: "cpu" or "<kind>:<index>"; None: the one the model was compiled for, index 0.
        context: tokens of prompt and output together; None: as compiled.
        max_batch: requests decoded together; None: as compiled.
        kv_tokens: tokens of the KV cache in all; None: the core's choice.
        prefill_chunk: tokens of one step at most; None: the core's choice.
        threads: of the CPU kernels; None: WHERRY_THREADS, else the core's choice.
        progress: what a compilation reports to.

    Raises:
        ArtifactError: the compiled folder is damaged, or does not fit this machine.
        ResourceError: there is not enough memory.
        UsageError: an argument is out of range.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        target: str = "auto",
        quant: str | None = None,
        kv_dtype: str = "auto",
        activations: str = "auto",
        device: str | None = None,
        context: int | None = None,
        max_batch: int | None = None,
        kv_tokens: int | None = None,
        prefill_chunk: int | None = None,
        threads: int | None = None,
        progress: Any = None,
    ) -> None:
        loaded = LoadedModel.load(
            model,
            target=target,
            quant=quant,
            kv_dtype=kv_dtype,
            activations=activations,
            device=device,
            context=context,
            max_batch=max_batch,
            kv_tokens=kv_tokens,
            prefill_chunk=prefill_chunk,
            threads=threads,
            progress=progress,
        )
        self._attach(loaded)

    @classmethod
    def of(cls, loaded: LoadedModel) -> MLCEngine:
        """An engine over a model that is loaded already; they share its life."""
        engine = cls.__new__(cls)
        engine._attach(loaded)
        return engine

    def _attach(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.chat = Chat(loaded)
        self.completions = Completions(loaded)

    def generate(self, token_ids: Sequence[int], params: SamplingParams) -> Iterator[Event]:
        """The events of one request, without tokenizer: the last one has a `finish`.

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

    def stats(self) -> CoreStats:
        """Counters of the core: steps, tokens, pages."""
        return self.loaded.stats()

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

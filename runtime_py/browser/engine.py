"""MLCEngine in a browser; it needs a browser that can suspend WebAssembly (JSPI)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

from ..answers import ChatCompletion, ChatCompletionChunk, Completion, Shape
from ..core.interface import CoreStats
from ..shaped import stats_of
from ..vector_answers import EmbeddingAnswer
from . import async_engine
from .bridge import Progress, wait
from .options import split

FullResponse = TypeVar("FullResponse", bound=Shape)
Chunk = TypeVar("Chunk", bound=Shape)


class Stream(Generic[Chunk]):
    """An iterator over the chunks of a response.

    Closing the stream, or leaving its `with`, frees the request.
    """

    def __init__(self, chunks: async_engine.AsyncStream[Chunk]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        try:
            return wait(self._chunks.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Stream[Chunk]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Abort the request if it still runs; idempotent."""
        self._chunks.cancel()


class Endpoint(Generic[FullResponse, Chunk]):
    """An endpoint of the engine in a browser: its `create` runs requests of one kind."""

    def __init__(self, endpoint: async_engine.Endpoint[FullResponse, Chunk]) -> None:
        self._endpoint = endpoint

    @overload
    def create(self, *, stream: Literal[True], **fields: Any) -> Stream[Chunk]: ...
    @overload
    def create(self, *, stream: Literal[False] | None = ..., **fields: Any) -> FullResponse: ...
    def create(self, *, stream: bool | None = None, **fields: Any) -> FullResponse | Stream[Chunk]:
        """Answer a request; the arguments are the request fields of the npm package.

        Returns:
            The answer, or with `stream=True` an iterator of chunks.

        Raises:
            RequestError: an argument is wrong, or the request does not fit the context.
            ToolchainError: this browser cannot suspend WebAssembly.
        """
        if stream:
            return Stream(wait(self._endpoint.create(stream=True, **fields)))
        response: FullResponse = wait(self._endpoint.create(stream=False, **fields))
        return response


class Embeddings:
    """The endpoint `engine.embeddings`, with the interface of OpenAI's client."""

    def __init__(self, endpoint: async_engine.AsyncEmbeddings) -> None:
        self._endpoint = endpoint

    def create(self, **fields: Any) -> EmbeddingAnswer:
        """Embed each input; the arguments are the fields of EmbeddingRequest.

        Raises:
            RequestError: an argument is wrong, or the model has no embeddings.
            ToolchainError: this browser cannot suspend WebAssembly.
        """
        return wait(self._endpoint.create(**fields))


class Chat:
    """The namespace `engine.chat`, as in OpenAI's client."""

    def __init__(self, completions: Endpoint[ChatCompletion, ChatCompletionChunk]) -> None:
        self.completions = completions


class MLCEngine:
    """A language model in this browser; the arguments are those of AsyncMLCEngine.

    Raises:
        ArtifactError: the model cannot be fetched, is damaged, or has another version.
        ResourceError: there is not enough memory.
        ToolchainError: this browser lacks a feature that the model needs, or cannot suspend
            WebAssembly.
    """

    def __init__(self, model: str | Path | Sequence[str], **options: Any) -> None:
        limits, progress = split(options)
        loading = wait(_loaded(model, limits, progress))
        self._loading = loading
        self.chat = Chat(Endpoint(async_engine.chat_endpoint(loading)))
        self.completions: Endpoint[Completion, Completion] = Endpoint(
            async_engine.completion_endpoint(loading)
        )
        self.embeddings = Embeddings(async_engine.AsyncEmbeddings(loading))

    def stats(self) -> CoreStats:
        """Return the core's counters: steps, tokens, pages."""
        return stats_of(wait(self._loading.bridge.stats()))

    def close(self) -> None:
        """End all requests and free the model; idempotent."""
        wait(self._loading.close())

    def __enter__(self) -> MLCEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _loaded(
    model: str | Path | Sequence[str], limits: dict[str, Any], progress: Progress | None
) -> async_engine.Loading:
    loading = async_engine.Loading(model, limits, progress)
    try:
        await loading.ready()
    except BaseException:
        await loading.close()
        raise
    return loading

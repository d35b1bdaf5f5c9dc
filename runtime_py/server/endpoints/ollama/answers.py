"""Writes responses in Ollama's shapes, streamed or whole."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from ....answer.delta import Delta, LoggedToken
from ....answer.generation import Generation
from ....answer.lazy import LazyList
from ....answer.shapes import Shape
from ....tools.parts import (
    Call,
    CallArguments,
    CallBegin,
    CallEnd,
    Part,
    Reasoning,
    Text,
)
from ..described import COUNT, FLAG, TEXT, Schema, object_of, one_of

_NS = 10**9


@dataclass(slots=True)
class Message(Shape):
    """The assistant's message in Ollama's shape."""

    _optional = frozenset({"thinking", "tool_calls"})
    role: str = "assistant"
    content: str = ""
    thinking: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


@dataclass(slots=True)
class Ending(Shape):
    """Fields of a stream's last chunk and of a whole response; durations are nanoseconds."""

    done_reason: str
    total_duration: int
    load_duration: int  # nanoseconds that the request waited for the model's load
    prompt_eval_count: int
    prompt_eval_duration: int
    eval_count: int
    eval_duration: int


def schema_of(said: Schema) -> Schema:
    """Return the JSON Schema of a response or chunk; only a stream's last chunk has the ending."""
    counts = {f.name: COUNT for f in fields(Ending) if f.name != "done_reason"}
    head = {"model": TEXT, "created_at": TEXT, **said, "done": FLAG}
    ending = {"done_reason": one_of("stop", "length", "load", "unload"), **counts}
    return {**object_of(**head), "properties": {**head, **ending}}


MESSAGE = object_of(role=one_of("assistant"), content=TEXT)
CHAT_SCHEMA = schema_of({"message": MESSAGE})
GENERATE_SCHEMA = schema_of({"response": TEXT})


@dataclass(slots=True)
class Line(Shape):
    """A chunk or a whole response; `said` has the fields that only its endpoint has."""

    model: str
    created_at: str
    said: dict[str, Any]
    done: bool
    ending: dict[str, Any]

    def dumped(self) -> dict[str, Any]:
        """Return all fields in one object; overrides `Shape.dumped`."""
        head = {"model": self.model, "created_at": self.created_at}
        return {**head, **self.said, "done": self.done, **self.ending}


def now() -> str:
    """Return the current time in Ollama's format."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


class Reply:
    """Writes the responses of /api/chat and /api/generate.

    Args:
        name: the client's name of the model.
        chat: whether the path is /api/chat.
        started: arrival of the request, on the clock of perf_counter; `planned`: the time at which
            its model was loaded.
        logprobs: whether the client asked for logprobs.
    """

    def __init__(
        self, name: str, *, chat: bool, started: float, planned: float, logprobs: bool
    ) -> None:
        self._name, self._chat = name, chat
        self._started, self._planned = started, planned
        self._logprobs = logprobs
        self._calls: list[Call] = []
        self._finish = "stop"

    def opening(self, generation: Generation) -> list[Line]:
        """Return no chunks: Ollama announces no role. Implements `Reply.opening`."""
        return []

    def chunks(self, delta: Delta) -> list[Line]:
        """Return the chunks of a delta, tool calls only when complete.

        Implements `Reply.chunks`.
        """
        if delta.finish:
            self._finish = delta.finish
        said = self._said(self._message(delta.parts), delta.logprobs)
        return [Line(self._name, now(), said, False, {})] if said else []

    def closing(self, generation: Generation) -> list[Line]:
        """Return the last chunk, with counts and times; implements `Reply.closing`."""
        return [self._last(self._empty(), generation)]

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Line:
        """Return the whole response; implements `Reply.whole`."""
        (delta,) = choices
        self._finish = delta.finish or "stop"
        said = self._said(self._message(delta.parts), delta.logprobs)
        return self._last(said or self._empty(), generation)

    def _message(self, parts: Sequence[Part]) -> Message:
        message = Message()
        for part in parts:
            if isinstance(part, Text):
                message.content += part.text
            elif isinstance(part, Reasoning):
                message.thinking = (message.thinking or "") + part.text
            elif isinstance(part, CallBegin):
                self._calls.append(Call(part.id, part.name))
            elif isinstance(part, CallArguments):
                self._calls[-1].arguments += part.text
            elif isinstance(part, CallEnd) and (call := _called(self._calls[-1], part)):
                message.tool_calls = [*(message.tool_calls or ()), call]
        return message

    def _said(self, message: Message, tokens: Sequence[LoggedToken]) -> dict[str, Any]:
        """Return the message in the form of the endpoint; {} if the message is empty."""
        logged = {"logprobs": LazyList(tokens, _logged)} if self._logprobs and tokens else {}
        if not (message.content or message.thinking or message.tool_calls or logged):
            return {}
        if self._chat:
            return {"message": message.model_dump(), **logged}
        named = {"response": message.content, "thinking": message.thinking}
        return {n: v for n, v in named.items() if v is not None} | logged

    def _empty(self) -> dict[str, Any]:
        return {"message": Message().model_dump()} if self._chat else {"response": ""}

    def _last(self, said: dict[str, Any], generation: Generation) -> Line:
        usage, times = generation.usage, generation.timings
        ending = Ending(
            done_reason="length" if self._finish == "length" else "stop",
            total_duration=int((time.perf_counter() - self._started) * _NS),
            load_duration=int((self._planned - self._started) * _NS),
            prompt_eval_count=usage.prompt_tokens,
            prompt_eval_duration=int(times.prompt_ms * 1e6),
            eval_count=usage.completion_tokens,
            eval_duration=int(times.predicted_ms * 1e6),
        )
        return Line(self._name, now(), said, True, ending.model_dump())


def without_prompt(name: str, *, chat: bool, reason: str) -> dict[str, Any]:
    """Return the response to a request without a prompt, which only loads or unloads a model."""
    said = {"message": Message().model_dump()} if chat else {"response": ""}
    return Line(name, now(), said, True, {"done_reason": reason}).model_dump()


def _called(call: Call, end: CallEnd) -> dict[str, Any] | None:
    """Return a tool call in Ollama's form, arguments as an object; None if it is incomplete."""
    if not end.whole:
        return None
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _logged(token: LoggedToken) -> dict[str, Any]:
    def told(piece: bytes, logprob: float | None) -> dict[str, Any]:
        text = piece.decode(errors="replace")
        return {"token": text, "logprob": logprob or 0.0, "bytes": list(piece)}

    alternatives = [told(piece, logprob) for piece, logprob in token.top]
    more = {"top_logprobs": alternatives} if alternatives else {}
    return told(token.piece, token.logprob) | more

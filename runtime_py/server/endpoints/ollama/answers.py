"""Writes responses in Ollama's shapes, streamed or whole."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from ....answers import Shape, Timings, Usage
from ....host.running import Running
from ..described import COUNT, FLAG, TEXT, Schema, object_of, one_of
from ..parts import CallArguments, CallBegin, CallEnd, Delta, Json, Part, Reasoning, Text

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


def now() -> str:
    """Return the current time in Ollama's format."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def line(name: str, said: Json, ending: Json | None = None) -> Json:
    """Return a chunk or a whole response; `said` has the fields that only its endpoint has."""
    head = {"model": name, "created_at": now()}
    return {**head, **said, "done": ending is not None, **(ending or {})}


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str = ""


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
        self._calls: list[_Call] = []
        self._finish = "stop"

    def opening(self, usage: Usage, running: Running) -> list[Json]:
        """Return no chunks: Ollama announces no role. Implements `Reply.opening`."""
        return []

    def chunks(self, delta: Delta) -> list[Json]:
        """Return the chunks of a delta, tool calls only when complete.

        Implements `Reply.chunks`.
        """
        if delta.finish:
            self._finish = delta.finish
        said = self._said(self._message(delta.parts), delta.logprobs)
        return [line(self._name, said)] if said else []

    def closing(self, usage: Usage, timings: Timings) -> list[Json]:
        """Return the last chunk, with counts and times; implements `Reply.closing`."""
        return [self._last(self._empty(), usage, timings)]

    def full_response(self, delta: Delta, usage: Usage, timings: Timings) -> Json:
        """Return the whole response; implements `Reply.full_response`."""
        self._finish = delta.finish or "stop"
        said = self._said(self._message(delta.parts), delta.logprobs)
        return self._last(said or self._empty(), usage, timings)

    def _message(self, parts: Sequence[Part]) -> Message:
        message = Message()
        for part in parts:
            if isinstance(part, Text):
                message.content += part.text
            elif isinstance(part, Reasoning):
                message.thinking = (message.thinking or "") + part.text
            elif isinstance(part, CallBegin):
                self._calls.append(_Call(part.id, part.name))
            elif isinstance(part, CallArguments):
                self._calls[-1].arguments += part.text
            elif isinstance(part, CallEnd) and (call := _called(self._calls[-1], part)):
                message.tool_calls = [*(message.tool_calls or ()), call]
        return message

    def _said(self, message: Message, tokens: Sequence[Json]) -> Json:
        """Return the message in the form of the endpoint; {} if the message is empty."""
        logged = (
            {"logprobs": [_logged(token) for token in tokens]} if self._logprobs and tokens else {}
        )
        if not (message.content or message.thinking or message.tool_calls or logged):
            return {}
        if self._chat:
            return {"message": message.model_dump(), **logged}
        named = {"response": message.content, "thinking": message.thinking}
        return {n: v for n, v in named.items() if v is not None} | logged

    def _empty(self) -> dict[str, Any]:
        return {"message": Message().model_dump()} if self._chat else {"response": ""}

    def _last(self, said: Json, usage: Usage, times: Timings) -> Json:
        ending = Ending(
            done_reason="length" if self._finish == "length" else "stop",
            total_duration=int((time.perf_counter() - self._started) * _NS),
            load_duration=int((self._planned - self._started) * _NS),
            prompt_eval_count=usage.prompt_tokens,
            prompt_eval_duration=int(times.prompt_ms * 1e6),
            eval_count=usage.completion_tokens,
            eval_duration=int(times.predicted_ms * 1e6),
        )
        return line(self._name, said, ending.model_dump())


def without_prompt(name: str, *, chat: bool, reason: str) -> dict[str, Any]:
    """Return the response to a request without a prompt, which only loads or unloads a model."""
    said = {"message": Message().model_dump()} if chat else {"response": ""}
    return line(name, said, {"done_reason": reason})


def _called(call: _Call, end: CallEnd) -> dict[str, Any] | None:
    """Return a tool call in Ollama's form, arguments as an object; None if it is incomplete."""
    if not end.complete:
        return None
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}


def _logged(token: Json) -> Json:
    """Return OpenAI's record of a token in Ollama's form: part of a character as U+FFFD."""

    def shown(one: Json) -> Json:
        text = bytes(one["bytes"]).decode(errors="replace")
        return {"token": text, "logprob": one["logprob"], "bytes": one["bytes"]}

    alternatives = [shown(one) for one in token["top_logprobs"]]
    return shown(token) | ({"top_logprobs": alternatives} if alternatives else {})

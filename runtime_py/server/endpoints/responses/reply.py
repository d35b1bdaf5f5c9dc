"""Writes responses in the shapes of OpenAI's Responses API: items, and the events of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....answers import Timings, Usage
from ....host.running import Running
from ...wire.errors import ApiError
from ...wire.framing import headers_of
from ..parts import CallArguments, CallBegin, Delta, Part, Reasoning, Text
from .items import CALLS, Json, new_id
from .tools import KnownTool

OPENAI_THOUGHTS = "reasoning_text"  # prefix of reasoning events that OpenAI's clients know
# The events with pieces of a call, by the kind of its item.
_PIECES = {
    "function_call": "function_call_arguments",
    "custom_tool_call": "custom_tool_call_input",
}
OPEN_THOUGHTS = "reasoning"  # prefix of reasoning events in the Open Responses specification


class ResponseReply:
    """Writes the responses of /v1/responses.

    Args:
        head: returns the fields of the response that are known before the output, from what C++
            says of the request.
        keep: callback that stores the complete response.
        thoughts: prefix of the reasoning events' names.
        tools: the tools of the request by the names that the model knows.
        ignored: returns the names of fields without effect, out of those that C++ ignores; the
            first event lists them with what adapted the messages. None: HTTP's headers do.
        writes: whether the response has output.
    """

    def __init__(
        self,
        head: Callable[[Json], Json],
        keep: Callable[[Json], None],
        thoughts: str = OPENAI_THOUGHTS,
        *,
        tools: Mapping[str, KnownTool] | None = None,
        ignored: Callable[[Sequence[str]], Sequence[str]] | None = None,
        writes: bool = True,
    ) -> None:
        self._head_of, self._head = head, dict[str, Any]()
        self._keep = keep
        self._events = _Events()
        self._output = _Output(self._events, tools or {}, thoughts)
        self._ignored = ignored
        self._writes = writes
        self._cut = False

    def opening(self, usage: Usage, running: Running) -> list[Json]:
        """Return the events with the response that has no output yet.

        Implements `Reply.opening`.
        """
        self._head = self._head_of(running.opened)
        begun = self._response("in_progress")
        headers = {}
        if self._ignored is not None:
            headers = headers_of(
                self._ignored(running.opened["ignored"]), running.opened["adapted"]
            )
        self._events.add(
            "response.created", response=begun, **({"headers": headers} if headers else {})
        )
        self._events.add("response.in_progress", response=begun)
        return self._events.taken()

    def chunks(self, delta: Delta) -> list[Json]:
        """Return the events that extend the response's items; implements `Reply.chunks`."""
        self._output.push(delta)
        self._cut = delta.finish == "length" and self._writes
        return self._events.taken()

    def keep_alive(self) -> Json:
        """Return an event that says that the response is still in progress."""
        self._events.add("keepalive")
        (event,) = self._events.taken()
        return event

    def closing(self, usage: Usage, timings: Timings) -> list[Json]:
        """Return the event with the complete response; implements `Reply.closing`."""
        response = self._ended(usage)
        self._events.add(f"response.{response['status']}", response=response)
        return self._events.taken()

    def full_response(self, delta: Delta, usage: Usage, timings: Timings) -> Json:
        """Return the whole response; implements `Reply.full_response`."""
        self.chunks(delta)
        return self._ended(usage)

    def failed(self, error: ApiError) -> Json:
        """Return the last event of a response that fails after its first event."""
        why = {"code": "server_error", "message": error.detail}
        self._events.add("response.failed", response=self._response("failed") | {"error": why})
        (event,) = self._events.taken()
        return event

    def _ended(self, usage: Usage) -> Json:
        response = self._response("incomplete" if self._cut else "completed")
        response["usage"] = usage_of(usage)
        if self._cut:
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        else:
            response["completed_at"] = int(time.time())
        self._keep(response)
        return response

    def _response(self, status: str) -> Json:
        return {**self._head, "status": status, "output": list(self._output.items)}


class _Events:
    """A queue of stream events with sequence numbers."""

    def __init__(self) -> None:
        self._number = 0
        self._ready: list[Json] = []

    def add(self, kind: str, **fields: Any) -> None:
        self._ready.append({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1

    def taken(self) -> list[Json]:
        ready, self._ready = self._ready, []
        return ready


class _Output:
    """Writes output items one after the other; `items` has the complete ones."""

    def __init__(
        self,
        events: _Events,
        tools: Mapping[str, KnownTool],
        thoughts: str,
    ) -> None:
        self.items: list[Json] = []
        self._events = events
        self._tools = tools
        self._thoughts = thoughts
        self._open: Json | None = None
        self._pieces: list[str] = []
        self._new_logprobs: list[Json] = []  # logprobs of the next piece of text
        self._logprobs: list[Json] = []  # logprobs of the open item

    def push(self, delta: Delta) -> None:
        self._new_logprobs += delta.logprobs
        for part in delta.parts:
            self._push(part)
        if delta.finish is not None:
            self._close("incomplete" if delta.finish == "length" else "completed")

    def _push(self, part: Part) -> None:
        if isinstance(part, Text):
            self._add_text(part.text)
        elif isinstance(part, Reasoning):
            if self._kind != "reasoning":
                self._begin({"type": "reasoning", "id": new_id("rs"), "summary": []})
                self._part("added", {"type": "reasoning_text", "text": ""})
            self._pieces.append(part.text)
            self._event(f"response.{self._thoughts}.delta", content_index=0, delta=part.text)
        elif isinstance(part, CallBegin):
            tool = self._tools.get(part.name) or KnownTool("function_call", part.name)
            row = CALLS[tool.kind]
            empty: Json = {row["text"]: ""} if "text" in row else {row["object"]: {}}
            head = {"type": tool.kind, "id": new_id(row["id"]), "call_id": part.id}
            self._begin({**head, **tool.called, **empty})
        elif isinstance(part, CallArguments):
            self._pieces.append(part.text)
            if self._kind in _PIECES:
                self._event(f"response.{_PIECES[self._kind]}.delta", delta=part.text)
        else:
            self._close("completed" if part.complete else "incomplete")

    def _add_text(self, text: str) -> None:
        if self._kind != "message":
            self._begin({"type": "message", "id": new_id("msg"), "role": "assistant"})
            self._part("added", _text_part("", []))
        new, self._new_logprobs = self._new_logprobs, []
        self._pieces.append(text)
        self._logprobs += new
        self._event("response.output_text.delta", content_index=0, delta=text, logprobs=new)

    @property
    def _kind(self) -> str | None:
        return self._open["type"] if self._open else None

    def _begin(self, item: Json) -> None:
        self._close("completed")
        self._open = item
        empty: Json = {"content": []} if item["type"] not in CALLS else {}
        added = {**item, **empty, "status": "in_progress"}
        self._events.add("response.output_item.added", output_index=len(self.items), item=added)

    def _close(self, status: str) -> None:
        if self._open is None:
            return
        text = "".join(self._pieces)
        if self._kind == "message":
            self._close_text(text)
        elif self._kind == "reasoning":
            part = {"type": "reasoning_text", "text": text}
            self._event(f"response.{self._thoughts}.done", content_index=0, text=text)
            self._part("done", part)
            self._open["content"] = [part]
        elif self._kind == "tool_search_call":
            self._open["arguments"] = _object(text)
        else:
            assert self._kind is not None
            field = CALLS[self._kind]["text"]
            named = {"name": self._open["name"]} if self._kind == "function_call" else {}
            self._event(f"response.{_PIECES[self._kind]}.done", **named, **{field: text})
            self._open[field] = text
        item = {**self._open, "status": status}
        self._events.add("response.output_item.done", output_index=len(self.items), item=item)
        self.items.append(item)
        self._open, self._pieces, self._logprobs = None, [], []

    def _close_text(self, text: str) -> None:
        assert self._open is not None
        self._logprobs += self._new_logprobs
        self._new_logprobs = []
        part = _text_part(text, self._logprobs)
        self._event(
            "response.output_text.done", content_index=0, text=text, logprobs=self._logprobs
        )
        self._part("done", part)
        self._open["content"] = [part]

    def _part(self, what: str, part: Json) -> None:
        self._event(f"response.content_part.{what}", content_index=0, part=part)

    def _event(self, kind: str, **fields: Any) -> None:
        assert self._open is not None
        self._events.add(kind, item_id=self._open["id"], output_index=len(self.items), **fields)


def _object(text: str) -> Json:
    try:
        value = json.loads(text)
    except ValueError:  # the output was cut
        return {}
    return value if isinstance(value, dict) else {}


def _text_part(text: str, logprobs: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def usage_of(usage: Usage) -> Json:
    """Return token counts in the shape of the Responses API."""
    cached = usage.prompt_tokens_details.cached_tokens
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {
            "reasoning_tokens": usage.completion_tokens_details.reasoning_tokens
        },
        "total_tokens": usage.total_tokens,
    }

"""Writes responses in Anthropic's shapes: content blocks, and the events of a stream."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from pydantic_core import from_json

from ....answers import Timings, Usage
from ....host.running import Running
from ..parts import CallArguments, CallBegin, CallEnd, Delta, Json, Part, Reasoning, Text


class MessageReply:
    """Writes the responses of /v1/messages.

    Args:
        model: the model's name.
        max_tokens: maximum tokens of the output; the context may end before.
        omit: whether thinking blocks are sent without their text.
    """

    def __init__(self, model: str, *, max_tokens: int, omit: bool) -> None:
        self._id = f"msg_{secrets.token_hex(12)}"
        self._model = model
        self._max_tokens = max_tokens
        self._room = 0
        self._omit = omit
        self._blocks = _Blocks(omit=omit)
        self._end: Json = {}

    def opening(self, usage: Usage, running: Running) -> list[Json]:
        """Return the event with the empty message, and a ping; implements `Reply.opening`."""
        self._room = running.opened["room"]
        message = self._message([], _usage(usage), _end(None, None))
        return [{"type": "message_start", "message": message}, {"type": "ping"}]

    def chunks(self, delta: Delta) -> list[Json]:
        """Return the events that extend the message's blocks; implements `Reply.chunks`."""
        events = [event for part in delta.parts for event in self._blocks.push(part)]
        if delta.finish is not None:
            events += self._blocks.close()
            self._end = self._end_of(delta)
        return events

    def closing(self, usage: Usage, timings: Timings) -> list[Json]:
        """Return the events with the stop reason and the usage; implements `Reply.closing`."""
        end = {"type": "message_delta", "delta": self._end, "usage": _usage(usage)}
        return [end, {"type": "message_stop"}]

    def full_response(self, delta: Delta, usage: Usage, timings: Timings) -> Json:
        """Return the whole message; implements `Reply.full_response`."""
        blocks = _complete_blocks(delta.parts, omit=self._omit)
        return self._message(blocks, _usage(usage), self._end_of(delta))

    def _message(self, content: list[Json], usage: Json, end: Json) -> Json:
        head = {"id": self._id, "type": "message", "role": "assistant", "model": self._model}
        return {**head, "content": content, **end, "usage": usage}

    def _full(self) -> str:
        cut = self._room < self._max_tokens
        return "model_context_window_exceeded" if cut else "max_tokens"

    def _end_of(self, delta: Delta) -> Json:
        if delta.stop is not None:
            return _end("stop_sequence", delta.stop)
        reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": self._full()}
        return _end(reasons[delta.finish or "stop"], None)


class _Blocks:
    """Writes the events of content blocks, one block after the other."""

    def __init__(self, *, omit: bool) -> None:
        self._omit = omit
        self._index = -1
        self._open: str | None = None  # type of the open block; None: no block is open
        self._digest = hashlib.sha256()  # hash of the thinking text, for its signature

    def push(self, part: Part) -> list[Json]:
        """Return the events of a part of the response."""
        if isinstance(part, Text):
            began = self._begin("text", {"text": ""})
            return [*began, self._delta("text_delta", text=part.text)]
        if isinstance(part, Reasoning):
            began = self._begin("thinking", {"thinking": "", "signature": ""})
            self._digest.update(part.text.encode(errors="replace"))
            delta = [] if self._omit else [self._delta("thinking_delta", thinking=part.text)]
            return began + delta
        if isinstance(part, CallBegin):
            closed = self.close()
            return closed + self._begin("tool_use", {"id": part.id, "name": part.name, "input": {}})
        if isinstance(part, CallArguments):
            return [self._delta("input_json_delta", partial_json=part.text)]
        return self.close()

    def close(self) -> list[Json]:
        """Return the events that end the open block, if a block is open."""
        if self._open is None:
            return []
        events: list[Json] = []
        if self._open == "thinking":
            events.append(self._delta("signature_delta", signature=_signature(self._digest)))
            self._digest = hashlib.sha256()
        self._open = None
        return [*events, {"type": "content_block_stop", "index": self._index}]

    def _begin(self, kind: str, fields: Json) -> list[Json]:
        if self._open == kind and kind != "tool_use":
            return []
        closed = self.close()
        self._index += 1
        self._open = kind
        block = {"type": kind, **fields}
        start = {"type": "content_block_start", "index": self._index, "content_block": block}
        return [*closed, start]

    def _delta(self, kind: str, **fields: str) -> Json:
        delta = {"type": kind, **fields}
        return {"type": "content_block_delta", "index": self._index, "delta": delta}


def _complete_blocks(parts: Sequence[Part], *, omit: bool) -> list[Json]:
    """Return the content blocks of a whole response; adjacent parts of a kind are joined."""
    blocks: list[Json] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, Reasoning):
            signature = _signature(hashlib.sha256(part.text.encode(errors="replace")))
            shown = "" if omit else part.text
            blocks.append({"type": "thinking", "thinking": shown, "signature": signature})
        elif isinstance(part, CallBegin):
            blocks.append({"type": "tool_use", "id": part.id, "name": part.name, "input": {}})
        elif isinstance(part, CallArguments):
            blocks[-1]["input"] = _object(part.text)
        else:
            assert isinstance(part, CallEnd)
    return blocks


def _object(arguments: str) -> Json:
    """Return a tool call's arguments as an object, parsed as far as they are complete and valid."""
    try:
        value = from_json(arguments, allow_partial="trailing-strings", allow_inf_nan=False)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _signature(digest: Any) -> str:
    """Return the signature of a thinking block: a checksum, which this server does not verify."""
    return base64.b64encode(digest.digest()).decode()


def _end(reason: str | None, sequence: str | None) -> Json:
    return {"stop_reason": reason, "stop_sequence": sequence}


def _usage(usage: Usage) -> Json:
    """Return token counts in Anthropic's shape; `input_tokens` excludes tokens from the cache."""
    cached = usage.prompt_tokens_details.cached_tokens
    return {
        "input_tokens": usage.prompt_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {
            "thinking_tokens": usage.completion_tokens_details.reasoning_tokens
        },
        "service_tier": "standard",
    }

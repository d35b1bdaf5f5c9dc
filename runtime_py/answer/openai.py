"""Replies in OpenAI's shapes: chat completions and completions."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from ..tools.parts import (
    CallArguments,
    CallBegin,
    Part,
    Reasoning,
    Text,
    joined,
    message_of,
)
from .delta import Delta, LoggedToken, PromptToken
from .generation import Generation
from .lazy import LazyList
from .shapes import (
    ChatChoice,
    ChatChunkChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatDelta,
    ChatLogprobs,
    ChatMessage,
    Completion,
    CompletionChoice,
    CompletionLogprobs,
    CustomCall,
    CustomCallDelta,
    FinishReason,
    FunctionCall,
    FunctionCallDelta,
    PromptLogprobs,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    TopLogprob,
)


class _Common:
    def __init__(self, model: str, kind: str) -> None:
        self._id = f"{kind}-{secrets.token_hex(12)}"
        self._created = int(time.time())
        self._model = model


class ChatReply(_Common):
    """Writes the responses of /v1/chat/completions.

    Args:
        model: the name that clients use.
        logprobs: whether they were requested.
        forced: the request asked for one tool by name; OpenAI's answer then ends with "stop".
        tools: tools may be called; the content may then be null, and no chunk has `content: ""`.
    """

    def __init__(
        self, model: str, *, logprobs: bool, forced: bool = False, tools: bool = False
    ) -> None:
        super().__init__(model, "chatcmpl")
        self._wants_logprobs = logprobs
        self._forced = forced
        self._nothing = None if tools else ""

    def _chunk(self, *choices: ChatChunkChoice) -> ChatCompletionChunk:
        return ChatCompletionChunk(self._id, self._created, self._model, list(choices))

    def opening(self, generation: Generation) -> list[ChatCompletionChunk]:
        """Return one chunk for each choice, with its role; implements `Reply.opening`."""
        role = ChatDelta(role="assistant", content=self._nothing)
        made = [self._chunk(ChatChunkChoice(job.index, role)) for job in generation.plan.jobs]
        made[0].dropped_messages = generation.plan.dropped_messages or None
        return made

    def chunks(self, delta: Delta) -> list[ChatCompletionChunk]:
        """Return the chunks of one delta; implements `Reply.chunks`."""
        added = _chat_delta(joined(delta.parts))
        # the delta has logprobs but no parts, so it still needs a chunk
        if not delta.parts and not delta.finish:
            added.content = self._nothing
        logprobs = self._logprobs(delta.logprobs) if delta.logprobs else None
        finish = self._finish(delta.finish)
        return [self._chunk(ChatChunkChoice(delta.index, added, finish, logprobs))]

    def closing(self, generation: Generation) -> list[ChatCompletionChunk]:
        """Return the closing chunks, such as the one with usage; implements `Reply.closing`."""
        if not generation.plan.include_usage:
            return []
        chunk = self._chunk()
        chunk.usage, chunk.timings = generation.usage, generation.timings
        return [chunk]

    def whole(self, choices: Sequence[Delta], generation: Generation) -> ChatCompletion:
        """Return the whole response from each choice's deltas; implements `Reply.whole`."""
        made = [
            ChatChoice(
                d.index,
                _chat_message(d.parts),
                self._finish(d.finish) or "stop",
                self._logprobs(d.logprobs) if self._wants_logprobs else None,
            )
            for d in choices
        ]
        usage, timings = generation.usage, generation.timings
        answer = ChatCompletion(self._id, self._created, self._model, made, usage, timings)
        answer.dropped_messages = generation.plan.dropped_messages or None
        if generation.plan.prompt_logprobs:
            answer.prompt_logprobs = prompt_logprobs(choices[0].prompt, generation)
        return answer

    def _finish(self, reason: FinishReason | None) -> FinishReason | None:
        return "stop" if self._forced and reason == "tool_calls" else reason

    def _logprobs(self, tokens: Sequence[LoggedToken]) -> ChatLogprobs:
        return ChatLogprobs(token_logprobs(tokens))


def token_logprobs(tokens: Sequence[LoggedToken]) -> LazyList[TokenLogprob]:
    """Convert logged tokens to the `logprobs` of a chat completion."""
    return LazyList(tokens, _token_logprob, _written)


def _token_logprob(t: LoggedToken) -> TokenLogprob:
    return TokenLogprob(
        _text(t.piece),
        t.logprob or 0.0,  # a chat echoes no prompt, so each token has a logprob
        list(t.piece),
        [TopLogprob(_text(piece), p, list(piece)) for piece, p in t.top],
    )


def _written(token: LoggedToken) -> str:
    """Return the JSON of a logged token; the constant part of each piece is written only once."""
    pieces, logprobs = [token.piece], [token.logprob or 0.0]
    for piece, logprob in token.top:
        pieces.append(piece)
        logprobs.append(logprob)
    # Writing the floats took most of the time; `to_json` is by far the fastest way to write them.
    numbers = to_json(logprobs).decode()[1:-1].split(",")
    if not all(map(math.isfinite, logprobs)):
        raise ValueError(f"a log probability is {min(logprobs)}, which JSON does not have")
    first, *top = [
        f"{head}{number}{tail}"
        for (head, tail), number in zip(map(_around, pieces), numbers, strict=True)
    ]
    return f'{first},"top_logprobs":[{"},".join(top)}{"}" if top else ""}]}}'


@lru_cache(2**16)
def _around(piece: bytes) -> tuple[str, str]:
    """Return the constant JSON before and after the log probability of a piece."""
    text = json.dumps(_text(piece), ensure_ascii=False)
    return f'{{"token":{text},"logprob":', f',"bytes":[{",".join(map(str, piece))}]'


class CompletionReply(_Common):
    """Writes the responses of /v1/completions."""

    def __init__(self, model: str, *, logprobs: bool) -> None:
        super().__init__(model, "cmpl")
        self._wants_logprobs = logprobs

    def opening(self, generation: Generation) -> list[Completion]:
        """Return no chunks: completions have no role to announce. Implements `Reply.opening`."""
        return []

    def chunks(self, delta: Delta) -> list[Completion]:
        """Return the chunks of one delta; implements `Reply.chunks`."""
        return [Completion(self._id, self._created, self._model, [self._choice(delta)])]

    def closing(self, generation: Generation) -> list[Completion]:
        """Return the closing chunks, such as the one with usage; implements `Reply.closing`."""
        return [self._whole([], generation)] if generation.plan.include_usage else []

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Completion:
        """Return the whole response from each choice's deltas; implements `Reply.whole`."""
        made = [self._choice(d) for d in choices]
        if generation.plan.prompt_logprobs:
            for choice, delta in zip(made, choices, strict=True):
                choice.prompt_logprobs = prompt_logprobs(delta.prompt, generation)
        return self._whole(made, generation)

    def _whole(self, choices: list[CompletionChoice], generation: Generation) -> Completion:
        usage, timings = generation.usage, generation.timings
        return Completion(self._id, self._created, self._model, choices, usage, timings)

    def _choice(self, delta: Delta) -> CompletionChoice:
        logprobs = self._logprobs(delta.logprobs) if self._wants_logprobs else None
        return CompletionChoice(delta.index, delta.text, delta.finish, logprobs)

    def _logprobs(self, tokens: Sequence[LoggedToken]) -> CompletionLogprobs:
        return CompletionLogprobs(
            tokens=[_text(t.piece) for t in tokens],
            token_logprobs=[t.logprob for t in tokens],
            top_logprobs=LazyList(tokens, _top_logprobs),
            text_offset=[t.offset for t in tokens],
        )


def _chat_delta(parts: Iterable[Part]) -> ChatDelta:
    made = ChatDelta()
    for part in parts:
        if isinstance(part, Text):
            made.content = (made.content or "") + part.text
        elif isinstance(part, Reasoning):
            made.reasoning_content = (made.reasoning_content or "") + part.text
            made.reasoning = made.reasoning_content
        elif isinstance(part, (CallBegin, CallArguments)):
            made.tool_calls = made.tool_calls or []
            _add_call(made.tool_calls, part)
    return made


def _add_call(calls: list[ToolCallDelta], part: CallBegin | CallArguments) -> None:
    """Add a part to a chunk's tool calls: clients accept one entry for each call in a chunk."""
    if isinstance(part, CallBegin):
        kind = "custom" if part.custom else "function"
        calls.append(_call_delta(part, part.name, ""))
        calls[-1].id, calls[-1].type = part.id, kind
    elif calls and calls[-1].index == part.index:
        calls[-1].add(part.text)
    else:
        calls.append(_call_delta(part, None, part.text))


def _call_delta(part: CallBegin | CallArguments, name: str | None, text: str) -> ToolCallDelta:
    if part.custom:
        return ToolCallDelta(part.index, custom=CustomCallDelta(name, text))
    return ToolCallDelta(part.index, FunctionCallDelta(name, text))


def _chat_message(parts: Iterable[Part]) -> ChatMessage:
    found = message_of(parts)
    message = ChatMessage(found.text if found.text or not found.calls else None)
    if found.reasoning:
        message.reasoning_content = message.reasoning = found.reasoning
    if found.calls:
        message.tool_calls = [
            ToolCall(c.id, custom=CustomCall(c.name, c.arguments), type="custom")
            if c.custom
            else ToolCall(c.id, FunctionCall(c.name, c.arguments))
            for c in found.calls
        ]
    return message


def _top_logprobs(token: LoggedToken) -> dict[str, float] | None:
    return None if token.logprob is None else {_text(piece): p for piece, p in token.top}


@lru_cache(2**16)
def _text(piece: bytes) -> str:
    r"""Return a token as a text; a partial character has OpenAI's form `bytes:\xe4\xb8`."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def prompt_logprobs(tokens: Sequence[PromptToken], generation: Generation) -> PromptLogprobs:
    """Return an object for each prompt token: the token and its alternatives; None for the first.

    `rank` is a token's place among all tokens; null if it is not among the alternatives.
    """
    tokenizer = generation.tokenizer

    def told(token: PromptToken | None) -> dict[str, dict[str, Any]] | None:
        if token is None:
            return None
        ranks = {i: rank for rank, (i, _) in enumerate(token.top, 1)}
        found = {token.token: token.logprob, **dict(token.top)}
        return {
            str(i): {
                "logprob": p,
                "rank": ranks.get(i),
                "decoded_token": _text(tokenizer.piece(i)),
            }
            for i, p in found.items()
        }

    return LazyList([None, *tokens], told)

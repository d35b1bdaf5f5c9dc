"""Drops the oldest turns of a conversation that exceeds the context (`truncation: "auto"`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from ..shapes.requests import ChatRequest

_SHARE = 4  # a response without a limit gets this fraction (1/4) of the context


def without_oldest(
    request: ChatRequest, context: int, tokens: Callable[[ChatRequest], int]
) -> tuple[ChatRequest, int]:
    """Return a chat that leaves room for its response, and the number of messages dropped from it.

    The messages before the first turn and the newest turns are kept, as many as fit with
    `max_tokens`, or with a quarter of the context. A turn begins with a message of the user; the
    last one stays. Without `truncation: "auto"` all messages stay.

    Args:
        request: the chat.
        context: maximum number of tokens of prompt and response together.
        tokens: returns the number of prompt tokens of a chat, or any larger number if it exceeds
            the context.

    Raises:
        RequestError: raised by `tokens`.
    """
    if request.truncation != "auto":
        return request, 0
    most = context - (request.max_completion_tokens or request.max_tokens or context // _SHARE)
    messages = request.messages
    first = _first_turn(request)
    begins = [i for i, m in enumerate(messages) if i > first and m.role == "user"]

    def of(begin: int) -> ChatRequest:
        kept = [*messages[:first], *messages[begin:]]
        return request.model_copy(update={"messages": kept})

    if not begins or tokens(request) <= most:
        return request, 0
    # The last beginning is taken whether it fits or not: fewer messages have fewer tokens.
    found = bisect_left(begins[:-1], True, key=lambda begin: tokens(of(begin)) <= most)
    return of(begins[found]), begins[found] - first


def _first_turn(request: ChatRequest) -> int:
    """Return the index of the first message that is no instruction."""
    roles = (m.role not in ("system", "developer") for m in request.messages)
    return next((i for i, spoken in enumerate(roles) if spoken), len(request.messages))

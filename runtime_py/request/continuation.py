"""Cuts a rendered prompt where the last message ends, so that the model continues that message.

Only the message's text tells where it ends in the prompt, and templates change texts. Therefore a
marker is appended to the message and searched in the rendered prompt.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from ..errors import RequestError
from ..shapes.requests import ChatRequest


def with_prefix(request: ChatRequest) -> ChatRequest:
    """Return a chat whose last message is continued if it says `prefix: true`.

    That is the word of Mistral and DeepSeek for `continue_final_message`.
    """
    last = request.messages[-1] if request.messages else None
    if (
        last is None
        or last.role != "assistant"
        or (last.model_extra or {}).get("prefix") is not True
    ):
        return request
    return request.model_copy(update={"continue_final_message": True})


def marked(
    request: ChatRequest, messages: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """Return messages for the template, and the marker at their end ("": none is continued).

    Raises:
        RequestError: the last message cannot be continued.
    """
    if not request.continue_final_message:
        return list(messages), ""
    last = request.messages[-1]
    if last.role != "assistant" or last.tool_calls or request.add_generation_prompt:
        raise RequestError(
            "continue_final_message needs a last message of the assistant without tool_calls, and "
            "no add_generation_prompt",
            param="continue_final_message",
        )
    mark = secrets.token_hex(16)
    end = {**messages[-1], "content": messages[-1]["content"] + mark}
    return [*messages[:-1], end], mark


def up_to(mark: str, text: str) -> str:
    """Return a prompt up to its marker; the whole prompt without a marker.

    Raises:
        RequestError: the template dropped the marker.
    """
    if not mark:
        return text
    if (end := text.rfind(mark)) < 0:
        raise RequestError(
            "The model's chat template leaves out the last message; it cannot be continued",
            param="continue_final_message",
            code="chat_template",
        )
    return text[:end]

"""Where a conversation's last message ends in a prompt: what the model is to go on with.

What a template writes after a message is known by nothing else than where the message's text ends,
and templates change texts: so a mark is put there, and looked for in what was rendered.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from .errors import RequestError
from .shapes import ChatRequest


def marked(
    request: ChatRequest, messages: Sequence[dict[str, Any]]
) -> tuple[list[dict[str, Any]], str]:
    """The messages for a template, and the mark at their end; "" if nothing is to go on.

    Raises:
        RequestError: the last message is none that goes on.
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
    """A prompt up to its mark; all of it if that is "".

    Raises:
        RequestError: the template left it out.
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

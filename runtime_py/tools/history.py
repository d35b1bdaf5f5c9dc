"""Adapts conversations to a chat template that refuses a part of them, or leaves it out.

app/tools/history.h does the work, for all runtimes alike; this is its binding.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.readers import open_readers
from ..text.chat_template import ChatTemplate

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Adapted:
    """Messages for a template, and the names of the steps that changed them."""

    messages: list[dict[str, Any]]
    changes: tuple[str, ...] = ()


class History:
    """What one chat template refuses or leaves out; usable from any thread.

    Args:
        template: the chat template.
        tool_format: name of the family of the model's tool calls.
    """

    def __init__(self, template: ChatTemplate, tool_format: str) -> None:
        self._library = open_readers()
        given = {
            "source": template.source,
            "special_tokens": template.special_tokens,
            "tool_format": tool_format,
        }
        data = json.dumps(given, ensure_ascii=False).encode()
        # None if the template is not valid in C++, which no known template is.
        self._handle = self._library.wherry_history_open(data, len(data))

    def adapted(self, messages: Messages) -> Adapted:
        """Return messages with all that the template is known to lack rewritten."""
        found = self._adapt(messages, refused=False, changes=[], variables={})
        return found or Adapted([dict(m) for m in messages])

    def retried(self, refused: Adapted, variables: Mapping[str, Any]) -> Adapted | None:
        """Return messages that the template takes, made of some that it refuses; None: of no kind.

        Args:
            refused: the adapted messages.
            variables: the template's variables, with "add_generation_prompt".
        """
        changes = list(refused.changes)
        return self._adapt(refused.messages, refused=True, changes=changes, variables=variables)

    def _adapt(self, messages: Messages, **given: Any) -> Adapted | None:
        if self._handle is None:
            return None
        try:
            data = json.dumps({"messages": list(messages), **given}, ensure_ascii=False).encode()
        except (TypeError, ValueError):  # half of a surrogate pair, or a value without a JSON form
            return None
        answer = self._library.wherry_history_adapt(self._handle, data, len(data))
        found: dict[str, Any] | None = json.loads(answer) if answer else None
        return None if found is None else Adapted(found["messages"], tuple(found["changes"]))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.wherry_history_close(self._handle)

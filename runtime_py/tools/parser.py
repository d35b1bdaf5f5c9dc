"""Parses the output of one choice into reasoning, text and calls, by the readers of app/tools."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from wherry.errors import WherryError

from ..core.readers import open_readers
from .families import Family
from .format import Tools
from .parts import CallArguments, CallBegin, CallEnd, Part, Reasoning, Text
from .reasoning import Thoughts

_PARTS: Mapping[str, type[Part]] = {
    "text": Text,
    "reasoning": Reasoning,
    "begin": CallBegin,
    "arguments": CallArguments,
    "end": CallEnd,
}
_DEPTH = 6  # levels of a schema down to properties.NAME.anyOf[0].type


class OutputParser:
    """Implements the `Parser` of tools/parts.py for a family of tool-call formats.

    Args:
        family: the format of calls; None: calls are not parsed.
        tools: tools that may be called.
        thoughts: the markers of reasoning; None: reasoning is not parsed.
        opened: whether the prompt has opened the reasoning.
        most: maximum number of calls; None: no limit.

    Attributes:
        reasoning: whether the next text is reasoning; implements `Parser.reasoning`.
        done: whether the output is complete; implements `Parser.done`.

    Raises:
        ToolchainError: libwherry_readers was not found.
    """

    reasoning: bool
    done: bool

    def __init__(
        self,
        family: Family | None,
        tools: Tools,
        thoughts: Thoughts | None = None,
        *,
        opened: bool = False,
        most: int | None = None,
    ) -> None:
        self._api = open_readers()
        asked = {
            "family": family.row if family else None,
            "tools": {name: _outline(schema) for name, schema in tools.schemas.items()},
            "held": tools.held,
            "thoughts": [thoughts.begin, thoughts.end] if thoughts else None,
            "opened": opened,
            "most": most,
        }
        text = json.dumps(asked).encode()
        self._reader = self._checked(self._api.wherry_reader_open(text, len(text)))
        weakref.finalize(self, self._api.wherry_reader_close, self._reader)
        self._push = self._api.wherry_reader_push
        self.push("")

    def push(self, text: str) -> list[Part]:
        """Parse more text and return new parts; implements `Parser.push`."""
        data = text.encode(errors="replace")
        return self._taken(self._push(self._reader, data, len(data)))

    def finish(self) -> list[Part]:
        """Return the parts of withheld text at the end; implements `Parser.finish`."""
        return self._taken(self._api.wherry_reader_finish(self._reader))

    def _taken(self, answer: bytes | None) -> list[Part]:
        self.reasoning, self.done, *parts = from_json(self._checked(answer))
        return [_PARTS[kind](*fields) for kind, *fields in parts]

    def _checked(self, made: Any) -> Any:
        if made is None:
            raise WherryError(f"Readers: {self._api.wherry_reader_error().decode()}")
        return made


def _outline(schema: Any, depth: int = _DEPTH) -> Any:
    """Return what the readers look at in a tool's schema: texts, down to the types of arguments."""
    if isinstance(schema, Mapping):
        return {k: _outline(v, depth - 1) for k, v in schema.items()} if depth else {}
    if isinstance(schema, list):
        return [_outline(item, depth - 1) for item in schema] if depth else []
    return schema if isinstance(schema, str) else None

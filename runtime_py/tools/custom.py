"""Turns calls of the function that stands for a custom tool into calls of the tool.

The model writes `{"input": "..."}` as the arguments of such a function; the client gets the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from ..shapes.tools import INPUT
from .parts import CallArguments, CallBegin, CallEnd, Parser, Part

_HEAD = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
# Whole characters of a JSON string; a high surrogate is whole with what follows it.
_CHARACTERS = re.compile(
    r'(?:[^"\\]|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[0-9a-fA-F]{4}|(?=[^\\]|\\[^u])))*"
)


class CustomCalls:
    """A parser that reports calls of custom tools with their input; implements `Parser`.

    Args:
        parser: the parser of the output, for which every tool is a function.
        names: names of the custom tools.
    """

    def __init__(self, parser: Parser, names: Collection[str]) -> None:
        self._parser = parser
        self._names = names
        self._input: _Input | None = None  # the input of the open call of a custom tool

    @property
    def reasoning(self) -> bool:
        """Tell whether the next text is reasoning; implements `Parser.reasoning`."""
        return self._parser.reasoning

    @property
    def done(self) -> bool:
        """Tell whether the output is complete; implements `Parser.done`."""
        return self._parser.done

    def push(self, text: str) -> list[Part]:
        """Parse more text and return new parts; implements `Parser.push`."""
        return self._translated(self._parser.push(text))

    def finish(self) -> list[Part]:
        """Return the parts of withheld text at the end; implements `Parser.finish`."""
        return self._translated(self._parser.finish())

    def _translated(self, parts: list[Part]) -> list[Part]:
        made: list[Part] = []
        for part in parts:
            if isinstance(part, CallBegin) and part.name in self._names:
                self._input = _Input()
                part = CallBegin(part.index, part.id, part.name, custom=True)
            elif self._input and isinstance(part, CallArguments):
                part = CallArguments(part.index, self._input.push(part.text), custom=True)
            elif self._input and isinstance(part, CallEnd):
                made.append(CallArguments(part.index, self._input.rest(), custom=True))
                self._input = None
            made.append(part)
        return [part for part in made if not isinstance(part, CallArguments) or part.text]


class _Input:
    """Decodes the input of a call from its arguments, as they come.

    Arguments of another shape, which models write by mistake, are the input themselves.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._begun = self._ended = False

    def push(self, text: str) -> str:
        """Return the text of the input that these characters complete."""
        self._pending += text
        if not self._begun:
            head = _HEAD.match(self._pending)
            if head is None:
                return ""
            self._begun, self._pending = True, self._pending[head.end() :]
        if self._ended:
            return ""
        whole = _CHARACTERS.match(self._pending)
        assert whole is not None
        self._pending = self._pending[whole.end() :]
        self._ended = self._pending.startswith('"')
        return _decoded(whole.group())

    def rest(self) -> str:
        """Return the input at the end of a call that has another shape."""
        return "" if self._begun else self._pending


def _decoded(escaped: str) -> str:
    try:
        text: str = json.loads(f'"{escaped}"', strict=False)
    except ValueError:  # an escape that JSON does not have
        return escaped
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

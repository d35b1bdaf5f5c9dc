"""Parses the output of one choice into reasoning, text and calls."""

from __future__ import annotations

from .families import Family
from .format import Tools
from .output import Output
from .parts import Part
from .reasoning import Thoughts
from .scanner import Scanner, Steps


class OutputParser:
    """Implements the `Parser` of tools/parts.py for a family of tool-call formats.

    Args:
        family: the format of calls; None: calls are not parsed.
        tools: tools that may be called.
        thoughts: the markers of reasoning; None: reasoning is not parsed.
        opened: whether the prompt has opened the reasoning.
        most: maximum number of calls; None: no limit.
    """

    def __init__(
        self,
        family: Family | None,
        tools: Tools,
        thoughts: Thoughts | None = None,
        *,
        opened: bool = False,
        most: int | None = None,
    ) -> None:
        self._s = Scanner()
        self._out = Output(family.new_id if family else str, most)
        self._steps = self._read(family, tools, thoughts, opened)
        self._go()

    def _read(
        self, family: Family | None, tools: Tools, thoughts: Thoughts | None, opened: bool
    ) -> Steps[None]:
        if thoughts:
            amid = family.format if family and not (family.channels or tools.held) else None
            yield from thoughts.read(self._s, self._out, amid, tools, opened=opened)
        if family:
            yield from family.format.read(self._s, self._out, tools)
        yield from self._text()

    def _text(self) -> Steps[None]:
        """Output the rest of the text as text."""
        s = self._s
        while True:
            self._out.text(s.text[s.at :])
            s.at = len(s.text)
            if not (yield from s.more()):
                return

    def _go(self) -> None:
        next(self._steps, None)

    @property
    def reasoning(self) -> bool:
        """Tell whether the next text is reasoning; implements `Parser.reasoning`."""
        return self._out.thinks

    @property
    def done(self) -> bool:
        """Tell whether the output is complete; implements `Parser.done`."""
        return self._out.full

    def push(self, text: str) -> list[Part]:
        """Parse more text and return new parts; implements `Parser.push`."""
        self._s.feed(text)
        self._go()
        return self._out.take()

    def finish(self) -> list[Part]:
        """Return the parts of withheld text at the end; implements `Parser.finish`."""
        self._s.ended = True
        self._go()
        self._out.finish()
        return self._out.take()

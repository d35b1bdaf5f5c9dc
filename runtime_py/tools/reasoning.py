"""Finds and reads reasoning, which models write between two markers before they answer."""

from __future__ import annotations

from dataclasses import dataclass

from wherry.data import read

from .format import Format, Tools
from .output import Output
from .scanner import Scanner, Steps


@dataclass(frozen=True, slots=True)
class Thoughts:
    """The two markers around reasoning.

    Attributes:
        begin: marker before the reasoning; some templates write it at the end of the prompt.
        end: marker after the reasoning.
    """

    begin: str
    end: str

    def opened(self, prompt: str) -> bool:
        """Tell whether a prompt ends inside of reasoning."""
        return prompt.rstrip().endswith(self.begin)

    def closed(self, prompt: str) -> bool:
        """Tell whether a prompt ends after reasoning, so that the output has none."""
        return prompt.rstrip().endswith(self.end)

    def read(
        self, s: Scanner, out: Output, form: Format | None, tools: Tools, *, opened: bool
    ) -> Steps[None]:
        """Read the reasoning at the beginning of an output.

        A model may repeat the first marker although the prompt has opened the reasoning. A call
        ends reasoning that is still open; its end marker may follow.

        Args:
            s: the scanner, before the output.
            out: the output that gets the reasoning.
            form: the format of calls that may end the reasoning; None: no calls are parsed.
            tools: the request's tools.
            opened: whether the prompt has opened the reasoning.
        """
        if opened:
            out.think()
        found = yield from s.attempt(self._begins(s))
        if not opened and not found:
            return
        out.think()
        begins = form.begins if form else ()
        while mark := (yield from s.until((self.end, *begins), out.text)):
            if mark == self.end:
                out.speak()
                return
            assert form
            if out.full or not (yield from s.attempt(form.calls(s, out, tools, mark))):
                out.text(mark)

    def _begins(self, s: Scanner) -> Steps[bool]:
        yield from s.space()
        return (yield from s.accept(self.begin))


MARKS = tuple(Thoughts(**row) for row in read("reasoning_marks"))


def thoughts_of(template: str) -> Thoughts | None:
    """Return the reasoning markers in a template; None: the model has none."""
    return next((m for m in MARKS if m.end in template), None)

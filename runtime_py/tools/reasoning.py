"""What models write to themselves before they answer, between two marks."""

from __future__ import annotations

from dataclasses import dataclass

from .format import Format, Tools
from .output import Output
from .scanner import Scanner, Steps


@dataclass(frozen=True, slots=True)
class Thoughts:
    """Two marks.

    Attributes:
        begin: before the reasoning; templates of some models write it at the end of the prompt.
        end: after it.
    """

    begin: str
    end: str

    def opened(self, prompt: str) -> bool:
        """Whether a prompt ends inside reasoning."""
        return prompt.rstrip().endswith(self.begin)

    def closed(self, prompt: str) -> bool:
        """Whether a prompt ends after reasoning, so that none will come."""
        return prompt.rstrip().endswith(self.end)

    def read(
        self, s: Scanner, out: Output, form: Format | None, tools: Tools, *, opened: bool
    ) -> Steps[None]:
        """Take the reasoning that an output begins with, if it does.

        A model whose prompt has opened it may still write the first mark itself. One that calls
        before it has closed its reasoning is done with it; the mark may still come.

        Args:
            s: before the output.
            out: takes it.
            form: how calls are written that may come amid reasoning; None: none may.
            tools: of the request.
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


MARKS = (
    Thoughts("<think>", "</think>"),
    Thoughts("[THINK]", "[/THINK]"),
    Thoughts("<|START_THINKING|>", "<|END_THINKING|>"),
    Thoughts("<seed:think>", "</seed:think>"),
    Thoughts("<|channel>thought", "<channel|>"),
)


def thoughts_of(template: str) -> Thoughts | None:
    """The marks that a template knows; None: its model does not think in marks."""
    return next((m for m in MARKS if m.end in template), None)

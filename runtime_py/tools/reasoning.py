"""Finds and reads reasoning, which models write between two markers before they answer."""

from __future__ import annotations

from dataclasses import dataclass

from wherry.data import read


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


MARKS = tuple(Thoughts(**row) for row in read("reasoning_marks"))


def thoughts_of(template: str) -> Thoughts | None:
    """Return the reasoning markers in a template; None: the model has none."""
    return next((m for m in MARKS if m.end in template), None)

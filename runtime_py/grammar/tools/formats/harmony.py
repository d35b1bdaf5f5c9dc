"""Harmony, the format of gpt-oss: an output consists of messages in channels.

    <|channel|>analysis<|message|>...<|end|>
    <|start|>assistant<|channel|>final<|message|>...<|return|>

`analysis` is reasoning, `final` text; a message `to=functions.NAME` is a call in any channel.
A message of `commentary` without an addressee is text for the user before the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule
from ..lark import ANY, Lark

_START, _CHANNEL, _CONSTRAIN, _MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")


@dataclass(frozen=True)
class Harmony(Format):
    """The Harmony format of gpt-oss, whose messages have channels."""

    begins = (_CHANNEL,)
    markers = (_START, _CHANNEL, _CONSTRAIN, _MESSAGE, *_ENDS)

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call, with which the output ends.

        Implements `Format.grammar`.
        """
        calls = []
        for rule in rules:
            header = f"commentary to=functions.{rule.name} {_CONSTRAIN}json{_MESSAGE}"
            calls.append(f"{lark.text(header)} {rule.arguments}")
        return f"{lead} {lark.either(calls)}"

    def forced(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output that consists of calls; implements `Format.forced`."""
        calls = self.grammar(lark, rules, lark.text(_CHANNEL), several=False)
        return f"{self._before(lark, 'analysis')} {calls}"

    def free(self, lark: Lark, rules: Sequence[Rule], *, several: bool) -> str:
        """Return the expression of an output of text and calls; implements `Format.free`."""
        call = self.grammar(lark, rules, lark.text(_CHANNEL), several=False)
        said = self._before(lark, "analysis", "commentary")
        return lark.either([f"{said} {call}", self.answer(lark, lark.rule(ANY, lexeme=True))])

    def answer(self, lark: Lark, body: str) -> str:
        """Return the expression of an output with the text `body`; implements `Format.answer`."""
        said = self._before(lark, "analysis", "commentary")
        return f"{said} {lark.text(f'{_CHANNEL}final{_MESSAGE}')} {body}"

    def _before(self, lark: Lark, *channels: str) -> str:
        """Return the expression of messages before the response: reasoning and commentary."""
        message = f"{lark.text(_MESSAGE)} {lark.rule(ANY, lexeme=True)}"
        end = lark.text(f"<|end|>{_START}assistant")
        names = " | ".join(map(lark.text, channels))
        return f"({lark.text(_CHANNEL)} ({names}) {message} {end})*"

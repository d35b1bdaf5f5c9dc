"""Harmony, the format of gpt-oss: an output consists of messages in channels.

    <|channel|>analysis<|message|>...<|end|>
    <|start|>assistant<|channel|>final<|message|>...<|return|>

`analysis` is reasoning, `final` text; a message `to=functions.NAME` is a call in any channel.
A message of `commentary` without an addressee is text for the user before the calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..format import Format, Rule, Tools
from ..json_text import value
from ..lark import ANY, Lark
from ..output import Output
from ..scanner import Scanner, Steps

_START, _CHANNEL, _CONSTRAIN, _MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
_ENDS = ("<|end|>", "<|call|>", "<|return|>")
_TO = re.compile(r"to=(?:functions\.)?([^\s<]+)")


@dataclass(frozen=True)
class Harmony(Format):
    """The Harmony format of gpt-oss, whose messages have channels."""

    begins = (_CHANNEL,)
    markers = (_START, _CHANNEL, _CONSTRAIN, _MESSAGE, *_ENDS)

    def read(self, s: Scanner, out: Output, tools: Tools) -> Steps[None]:
        """Read a whole output after its reasoning; implements `Format.read`."""
        while char := (yield from s.space()):
            if not (yield from s.attempt(self._message(s, out))):
                out.text(char)
                s.at += 1
                if found := (yield from s.until((_START, _CHANNEL), out.text)):
                    s.at -= len(found)

    def _message(self, s: Scanner, out: Output) -> Steps[bool]:
        """Read a header and its message; the first header begins in the prompt."""
        header = yield from s.accept_one((_START, _CHANNEL, "to="))
        if header is None:
            return False
        rest: list[str] = []
        found = yield from s.until((_MESSAGE, *_ENDS), rest.append)
        if found != _MESSAGE:
            return False
        s.release()
        yield from self._body(s, out, header + "".join(rest))
        return True

    def _body(self, s: Scanner, out: Output, header: str) -> Steps[None]:
        if to := _TO.search(header):
            out.begin(to[1])
            if (yield from s.space()) == "{":
                out.end(whole=(yield from value(s, out.arguments, _ENDS[1])))
                yield from s.until(_ENDS, lambda _: None)
            else:
                out.end(whole=bool((yield from s.until(_ENDS, out.arguments))))
            return
        if header.partition(_CHANNEL)[2].strip().startswith("analysis"):
            out.think()
        if (yield from s.until((*_ENDS, _START), out.text)) == _START:
            s.at -= len(_START)
        if out.thinks:
            out.speak()

    def calls(self, s: Scanner, out: Output, tools: Tools, begin: str) -> Steps[bool]:
        """Read one message, which may be a call; implements `Format.calls`."""
        return (yield from self._message(s, out))

    def grammar(self, lark: Lark, rules: Sequence[Rule], lead: str, *, several: bool) -> str:
        """Return the expression of one call, with which the output ends.

        Implements `Format.grammar`.
        """
        calls = []
        for rule in rules:
            header = f"commentary to=functions.{rule.name} {_CONSTRAIN}json{_MESSAGE}"
            calls.append(f"{lark.text(header)} %json {rule.text}")
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

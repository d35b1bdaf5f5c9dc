"""Turns token ids into text, one token at a time, without cutting a character.

The joined pieces equal the text of all tokens decoded together, with one intended exception: in a
run of byte-fallback tokens the library also drops whole characters next to a damaged byte. Here
released text stays, and only damaged bytes become U+FFFD.

The library's own DecodeStream loses an unfinished character at the end of a text (in 122 of 300
random lists of byte-level tokens), and raises "Invalid prefix encountered" for most random lists of
byte-fallback tokens, which a model may well sample.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from .token_bytes import TokenBytes
from .tokenizer import Tokenizer

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# number of last prompt tokens that can affect the next text: more than any character has bytes
_TAIL = 16
_PENDING = 16  # maximum number of tokens that wait for the rest of a character


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _REPLACEMENT * (error.end - error.start), error.end


codecs.register_error("wherry.replace_each_byte", _replace_each_byte)


class Detokenizer(Protocol):
    """The interface of a detokenizer, which returns the text of a growing list of tokens."""

    def push(self, token: int) -> str:
        """Return the text that this token completes; "" in the middle of a character."""

    def flush(self) -> str:
        """Return the rest of the text at its end: U+FFFD for an unfinished character."""


def detokenizer(
    tokenizer: Tokenizer, prompt: Sequence[int] = (), visible: Collection[int] = ()
) -> Detokenizer:
    """Return a detokenizer for one output.

    Args:
        tokenizer: the tokenizer of the model.
        prompt: token ids that the output continues; its text then keeps a leading space. Empty if
            the output is a text of its own.
        visible: special tokens that appear by name; other special tokens have no text.
    """
    tail = [t for t in prompt[-4 * _TAIL :] if tokenizer.is_text(t)][-_TAIL:]
    made: Detokenizer
    if tokenizer.token_bytes is not None:
        made = _ByBytes(tokenizer, tokenizer.token_bytes, tail, whole=len(prompt) <= _TAIL)
    else:
        made = _InContext(tokenizer, tail)
    return _WithNames(made, tokenizer, visible) if visible else made


class _WithNames:
    """A detokenizer that writes special tokens by name; it decodes the texts between separately."""

    def __init__(self, text: Detokenizer, tokenizer: Tokenizer, visible: Collection[int]) -> None:
        self._text = text
        self._names = {i: tokenizer.piece(i).decode() for i in visible}

    def push(self, token: int) -> str:
        name = self._names.get(token)
        return self._text.push(token) if name is None else self._text.flush() + name

    def flush(self) -> str:
        return self._text.flush()


class _ByBytes:
    """A detokenizer that joins the bytes of tokens and decodes UTF-8 incrementally."""

    def __init__(
        self, tokenizer: Tokenizer, rule: TokenBytes, tail: Iterable[int], *, whole: bool
    ) -> None:
        self._special = tokenizer.special_ids
        self._rule = rule
        errors = "wherry.replace_each_byte" if rule.each_byte else "replace"
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors)
        self._strip = rule.strip  # number of spaces that the beginning of the text still loses
        for token in tail:
            self.push(token)
            if not whole:
                self._strip = 0  # the text began before these tokens, so that it loses no space

    def push(self, token: int) -> str:
        if token in self._special:
            return ""
        return self._start(self._utf8.decode(self._rule(token)))

    def flush(self) -> str:
        return self._start(self._utf8.decode(b"", final=True))

    def _start(self, text: str) -> str:
        while self._strip and text:
            if text[0] != " ":
                self._strip = 0
                break
            text = text[1:]
            self._strip -= 1
        return text


class _InContext:
    """A detokenizer that asks the library for texts with and without the new tokens.

    The context is the last released text, so a decoder sees the neighbours it needs, and the cost
    of a token does not grow with the text.
    """

    def __init__(self, tokenizer: Tokenizer, tail: list[int]) -> None:
        self._tokenizer = tokenizer
        self._context = tail
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        if not self._tokenizer.is_text(token):
            return ""
        self._pending.append(token)
        text = self._new_text()
        if text.endswith(_REPLACEMENT) and len(self._pending) < _PENDING:
            return ""
        if text or len(self._pending) == _PENDING:
            self._context = (self._context + self._pending)[-_TAIL:]
            self._pending = []
        return text

    def flush(self) -> str:
        text, self._pending = self._new_text() if self._pending else "", []
        return text

    def _new_text(self) -> str:
        before = self._tokenizer.decode(self._context).rstrip(_REPLACEMENT)
        after = self._tokenizer.decode(self._context + self._pending)
        return after[len(before) :] if after.startswith(before) else after

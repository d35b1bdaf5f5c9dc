"""The bytes of single tokens, for the two kinds of decoders that work token by token.

They are byte-level BPE (GPT-2's table of printable characters for bytes) and SentencePiece with
byte fallback (`<0xE4>` for a byte, U+2581 for a space). Other decoders (WordPiece, suffixes) need a
token's neighbours; for them the detokenizer asks the library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import tokenizers

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@cache
def _byte_of_char() -> dict[str, int]:
    """Return GPT-2's table: printable Latin-1 stands for itself, other bytes follow from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    table = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in printable]
    return table | {chr(0x100 + i): b for i, b in enumerate(others)}


@dataclass(frozen=True, slots=True)
class TokenBytes:
    """Maps tokens to bytes; the bytes of a text are the joined bytes of its tokens.

    Attributes:
        of: a token's text in the vocabulary -> its bytes.
        name: a token's id -> its text in the vocabulary, None for an unknown id.
        strip: number of spaces that a whole text loses at its beginning.
        each_byte: whether damaged UTF-8 becomes a U+FFFD for each byte (byte fallback), or for each
            maximal part of a character (byte-level).
    """

    of: Callable[[str], bytes]
    name: Callable[[int], str | None]
    strip: int = 0
    each_byte: bool = False

    def __call__(self, token: int) -> bytes:
        """Return the bytes of one token; b"" for an unknown id."""
        name = self.name(token)
        return self.of(name) if name is not None else b""


def token_bytes_of(backend: tokenizers.Tokenizer) -> TokenBytes | None:
    """Return the token bytes of a tokenizer; None if its decoder does not work token by token."""
    if backend.decoder is None:
        return None
    # Only this part of tokenizer.json is serialized: the vocabulary would take a second, and memory
    # for each number up to the largest id.
    decoder = json.loads(backend.decoder.__getstate__())
    steps = decoder["decoders"] if decoder.get("type") == "Sequence" else [decoder]
    kinds = [step.get("type") for step in steps]
    if kinds == ["ByteLevel"]:
        return TokenBytes(_byte_level, backend.id_to_token)
    strip = _leading_strip(steps.pop()) if kinds and kinds[-1] == "Strip" else 0
    if strip is None or [s.get("type") for s in steps] != ["Replace", "ByteFallback", "Fuse"]:
        return None
    pattern = steps[0]["pattern"].get("String")
    if pattern is None:
        return None
    replacement = steps[0]["content"]

    def fallback(name: str) -> bytes:
        if byte := _BYTE.fullmatch(name):
            return bytes([int(byte[1], 16)])
        return name.replace(pattern, replacement).encode()

    return TokenBytes(fallback, backend.id_to_token, strip, each_byte=True)


def _byte_level(name: str) -> bytes:
    table = _byte_of_char()
    try:
        return bytes([table[c] for c in name])
    except KeyError:  # an added token may have characters outside of the byte table
        return name.encode()


def _leading_strip(step: dict[str, Any]) -> int | None:
    """Return the number of spaces that a Strip step removes at the beginning.

    None for other steps.
    """
    if step.get("content") != " " or step.get("stop") != 0:
        return None
    return int(step["start"])

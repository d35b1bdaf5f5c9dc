"""Computes a lower bound of a text's tokens, to refuse long texts before tokenization.

Tokenizing takes about 200 bytes of memory and a microsecond a character: a body of 16 MiB would
take gigabytes to learn that it is a hundred times too long.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import tokenizers

from .token_bytes import TokenBytes, token_bytes_of

_BLOCK = 2**16  # number of bytes that are counted at once
# Normalizers that keep every character's length, except that NFC may turn nine bytes into three.
_KEEPING_NORMALIZERS = frozenset({"NFC", "Prepend", "Replace"})
_KEEPING_SPLITTERS = frozenset({"ByteLevel", "Split", "Digits", "Punctuation", "Metaspace"})
_NFC_SHRINKS = 3


class TokenCover:
    """Computes a lower bound of a text's tokens from its bytes.

    Each byte weighs 1 / length of the longest token that contains it. No token's bytes weigh more
    than 1 together, so a text has at least as many tokens as its bytes weigh. In real vocabularies
    the longest tokens are spaces and dashes; letters weigh more.

    Args:
        tokens: for each token, the bytes that it may have in a text, and their maximum number.
        composes: whether the text is normalized to NFC first.
    """

    def __init__(self, tokens: Iterable[tuple[bytes, int]], *, composes: bool) -> None:
        longest = np.zeros(256, np.int64)
        for content, length in tokens:
            has = np.frombuffer(content, np.uint8)
            longest[has] = np.maximum(longest[has], length)
        self._weights = np.where(longest > 0, 1 / np.maximum(longest, 1), 1.0)
        self._composes = composes

    def at_least(self, text: str) -> int:
        """Return a lower bound of the number of tokens in `text`."""
        if self._composes and not text.isascii():
            return int(len(text.encode()) * self._weights.min() / _NFC_SHRINKS)
        data = np.frombuffer(text.encode(), np.uint8)
        counts = np.zeros(256, np.int64)
        for at in range(0, len(data), _BLOCK):
            counts += np.bincount(data[at : at + _BLOCK], minlength=256)
        return int(counts @ self._weights * (1 - 1e-9))


def token_cover(backend: tokenizers.Tokenizer) -> TokenCover | None:
    """Return a tokenizer's bound; None if one of its tokens may stand for text of any length.

    Such tokens are an unknown token for everything outside of the vocabulary, special tokens that
    absorb neighbouring spaces, and tokens after normalizers that remove text.
    """
    rule = token_bytes_of(backend)
    settings = json.loads(backend.to_str())
    if rule is None or not _keeps_all(settings):
        return None
    vocabulary = backend.get_vocab(with_added_tokens=True)
    if not _has_every_byte(vocabulary, rule):
        return None
    composes = any(s["type"] == "NFC" for s in _steps(settings["normalizer"], "normalizers"))
    # Some vocabularies write U+2581 for a space, and a text may contain either.
    return TokenCover(
        (
            ((normalized := rule.of(name)) + (own := name.encode()), max(len(normalized), len(own)))
            for name in vocabulary
        ),
        composes=composes,
    )


def _keeps_all(settings: dict[str, Any]) -> bool:
    normalizers = _steps(settings["normalizer"], "normalizers")
    splitters = _steps(settings["pre_tokenizer"], "pretokenizers")
    return (
        settings["model"].get("type") == "BPE"
        and all(s["type"] in _KEEPING_NORMALIZERS and _grows(s) for s in normalizers)
        and all(s["type"] in _KEEPING_SPLITTERS for s in splitters)
        and all(s.get("behavior") != "Removed" for s in splitters)
        and not any(t["lstrip"] or t["rstrip"] for t in settings["added_tokens"])
    )


def _steps(part: dict[str, Any] | None, inner: str) -> list[dict[str, Any]]:
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [s for step in part[inner] for s in _steps(step, inner)]
    return [part]


def _grows(step: dict[str, Any]) -> bool:
    """Tell whether a Replace step makes no text shorter; True for other steps."""
    if step["type"] != "Replace":
        return True
    pattern = step["pattern"].get("String")
    return pattern is not None and len(pattern.encode()) <= len(step["content"].encode())


def _has_every_byte(vocabulary: dict[str, int], rule: TokenBytes) -> bool:
    if rule.each_byte:
        return all(f"<0x{b:02X}>" in vocabulary for b in range(256))
    return {rule.of(name) for name in vocabulary if len(name) == 1} >= {
        bytes([b]) for b in range(256)
    }

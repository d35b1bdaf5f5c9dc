"""Texts in pieces: what Python's detokenizer and stop strings, and the core's, are tried with."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers as small

KINDS = {
    "byte_level": small.byte_level,
    "byte_fallback": small.byte_fallback,
    "byte_fallback_unstripped": lambda: small.byte_fallback(strip=False),
    "metaspace": small.metaspace,
    "word_piece": small.word_piece,
}
BYTES = [k for k in KINDS if k.startswith("byte")]
COMPLETE_CHARACTERS = "é日本🎉🇯🇵e\u0301"

STOPS: list[tuple[list[str], str, str]] = [  # stop strings, text, what comes out
    (["END"], "abcENDdef", "abc"),
    (["END"], "abcEN", "abcEN"),
    (["aab"], "aaab", "a"),
    (["abcd", "c"], "abcd", "ab"),
    (["bc", "abc"], "xabc", "x"),
    (["\n\n"], "a\n\nb", "a"),
    ([""], "abc", "abc"),
    ([], "abc", "abc"),
]


def random_text(rng: random.Random, length: int = 40) -> str:
    """Words, blanks and characters of many scripts."""
    ranges = [(0x20, 0x7E), (0x20, 0x20), (0xA0, 0x24F), (0x3040, 0x30FF), (0x1F300, 0x1F6FF)]
    ranges += [(0x300, 0x36F), (0x10000, 0x10FFFF), (0x2581, 0x2581), (0xFFFD, 0xFFFD)]
    words = ["the", " cat", "日本", "Once upon a time", "\n", "  "]
    return "".join(
        rng.choice(words) if rng.random() < 0.3 else chr(rng.randint(*rng.choice(ranges)))
        for _ in range(rng.randrange(length))
    )


def texts(tokenizer: Tokenizer, count: int) -> Iterator[list[int]]:
    """Ids of random texts."""
    rng = random.Random(1)
    for _ in range(count):
        yield tokenizer.encode(random_text(rng), add_special_tokens=False)


def plain_ids(tokenizer: Tokenizer) -> list[int]:
    """Ids that stand for no part of a character."""
    return [i for i in range(tokenizer.vocab_size) if b"\x80" > tokenizer.piece(i)[:1]]


def random_ids(tokenizer: Tokenizer, count: int) -> Iterator[list[int]]:
    """Not damaged runs of byte fallback, of which the library takes whole characters back."""
    rng = random.Random(2)
    rule = tokenizer.token_bytes
    every = rule is not None and not rule.each_byte
    known = range(tokenizer.vocab_size) if every else plain_ids(tokenizer)
    for _ in range(count):
        yield rng.choices(known, k=rng.randrange(60))


def continued(tokenizer: Tokenizer, count: int) -> Iterator[tuple[list[int], list[int]]]:
    """Prompts, and what continues them."""
    rng, known = random.Random(3), plain_ids(tokenizer)
    for _ in range(count):
        ids = rng.choices(known, k=rng.randrange(2, 80))
        cut = rng.randrange(1, len(ids))
        yield ids[:cut], ids[cut:]


def damaged(tokenizer: Tokenizer) -> list[int]:
    """Of byte fallback: a whole character, a part of one, a letter."""
    run = [tokenizer.backend.token_to_id(f"<0x{b:02X}>") for b in "é".encode() + b"\xe4\xb8"]
    return [*run, tokenizer.backend.token_to_id("a")]


def chunks_of(text: str, rng: random.Random) -> list[str]:
    """A text in pieces of one to four characters."""
    chunks, at = [], 0
    while at < len(text):
        step = rng.randint(1, 4)
        chunks.append(text[at : at + step])
        at += step
    return chunks


def random_stops(count: int) -> Iterator[tuple[Sequence[str], str, list[str]]]:
    """Stop strings, a text, and the text in chunks."""
    rng = random.Random(4)
    for _ in range(count):
        stops = ["".join(rng.choices("ab", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]
        text = "".join(rng.choices("abc", k=rng.randrange(14)))
        yield stops, text, chunks_of(text, rng)

"""A model that draws any token that the mask allows: what it writes is what the grammar is."""

from __future__ import annotations

import random
from functools import cache

from wherry.runtime.core.library import find_core, open_core, open_runtime
from wherry.runtime.grammar.compiler import find_llguidance
from wherry.runtime.grammar.native import Grammar, Vocabulary, Walk
from wherry.runtime.grammar.probe import Probe

END = 256
# Single bytes, some of them again in longer tokens, and a special token.
TOKENS = [bytes([b]) for b in range(256)] + [b"\xff<|end|>"]
TOKENS += [b'{"', b'":', b'"}', b"],[", b"foo", b'bar"', b", ", b'": "']
SIZE = len(TOKENS)
# Few characters: names meet each other, numbers are small.
FEW = [t if t in b'{}[]:,"\\ab01-. ' else b"" for t in TOKENS[:256]] + [TOKENS[END]]
# After so many tokens whatever ends something is preferred; few outputs are longer than the second.
SOON, MOST = 60, 400
_CLOSING = [END, *b'}]"', *b"0123456789el "]
_STRUCTURE = b'"}],:{['


def vocabulary(tokens=TOKENS) -> Vocabulary:
    open_runtime("cpu")
    return Vocabulary(open_core(), find_llguidance(), tokens)


@cache
def bytes_vocabulary() -> Vocabulary:
    return vocabulary()


@cache
def few_vocabulary() -> Vocabulary:
    return vocabulary(FEW)


def probe() -> Probe:
    return Probe(find_core(), find_llguidance())


def walk_of(grammar: Grammar, stop_ids=(END,), size=SIZE) -> Walk:
    return Walk(grammar.mask(stop_ids), size)


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether a text may be written, byte by byte, and may end there."""
    walk, data = walk_of(grammar), text.encode()
    for i, byte in enumerate(data):
        if byte not in walk.allowed():
            return False
        if walk.accept(byte):
            return i == len(data) - 1
    return END in walk.allowed()


def written(grammar: Grammar, rng: random.Random, tokens=TOKENS) -> bytes | None:
    """What a random model writes; None if it does not come to an end."""
    walk, out = walk_of(grammar, size=len(tokens)), b""
    for n in range(MOST):
        allowed = walk.allowed()
        token = _choice(allowed, n, rng, tokens)
        if token == END:
            return out
        assert tokens[token], f"token {token} has no text"
        out += tokens[token]
        if walk.accept(token):
            return out
    return None


def _choice(allowed: list[int], n: int, rng: random.Random, tokens) -> int:
    if n > SOON and (closing := next((t for t in _CLOSING if t in allowed), None)) is not None:
        return closing
    if rng.random() < 0.3:
        structure = [t for t in allowed if t == END or tokens[t][:1] in _STRUCTURE]
        return rng.choice(structure or allowed)
    return rng.choice(allowed)


def outputs(grammar: Grammar, count: int, seed: int = 0, tokens=TOKENS) -> list[bytes]:
    """What came to an end, of so many attempts."""
    rng = random.Random(seed)
    attempts = [written(grammar, rng, tokens) for _ in range(count)]
    return [a for a in attempts if a is not None]

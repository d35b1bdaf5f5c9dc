"""What a prompt begins with, as the keys of its blocks: known before anybody tokenizes it.

The keys are a chain: each is a hash of its block and of the key before, so two prompts have as many
equal keys as they have equal blocks at their beginning. The first continues the name of the model
and the salt, so what tenants may not share has no equal keys. A key may lie; all that depends on it
is which replica is asked.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

BLOCK = 64  # bytes of text
BLOCK_TOKENS = 16  # that they are in most texts
MOST_BLOCKS = 2048  # of one prompt: those that agree in 128 KiB differ in what they ask
_KEY = 8  # bytes

# Fields in the order in which templates write them, of all protocols.
_TENANT = ("model", "cache_salt")
_PROMPT = ("system", "instructions", "tools", "functions", "messages", "prompt", "input")
# What clients move from message to message as a conversation grows, and no template writes.
_UNWRITTEN = frozenset({"cache_control"})


def block_keys(request: Any) -> bytes:
    """The keys of the prompt's whole blocks.

    Args:
        request: a body's JSON, of any protocol.

    Returns:
        int64 keys as bytes, which is how they travel; b"" for what has no prompt.
    """
    if not isinstance(request, Mapping):
        return b""
    chain = blake2b(repr([request.get(name) for name in _TENANT]).encode(errors="replace"))
    key, keys = chain.digest()[:_KEY], []
    for block in _blocks(_pieces(request)):
        key = blake2b(block, key=key, digest_size=_KEY).digest()
        keys.append(key)
    return b"".join(keys)


def unpacked(keys: bytes) -> Sequence[int]:
    """The keys that `block_keys` packed."""
    return array("q", keys)


def _blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole blocks, MOST_BLOCKS at most; the pieces behind are not looked at."""
    left, count = b"", 0
    for piece in pieces:
        text = left + piece[: BLOCK * MOST_BLOCKS]
        end = len(text) - len(text) % BLOCK
        for at in range(0, end, BLOCK):
            if count == MOST_BLOCKS:
                return
            count += 1
            yield text[at : at + BLOCK]
        left = text[end:]


def _pieces(request: Mapping[str, Any]) -> Iterator[bytes]:
    """The texts of a prompt; what is appended to a conversation comes behind what was there."""
    for name in _PROMPT:
        if (value := request.get(name)) is not None:
            yield name.encode()
            yield from _texts(value)


def _texts(value: Any) -> Iterator[bytes]:
    if isinstance(value, str):
        yield value.encode(errors="replace")
    elif isinstance(value, Mapping):
        for name in sorted(value.keys() - _UNWRITTEN):
            yield b"\x1f" + name.encode(errors="replace") + b"="
            yield from _texts(value[name])
    elif isinstance(value, (list, tuple)):
        if value and type(value[0]) is int:  # token ids
            yield " ".join(map(str, value[: BLOCK * MOST_BLOCKS])).encode()
            return
        for item in value:
            yield b"\x1e"
            yield from _texts(item)
    else:
        yield repr(value).encode()

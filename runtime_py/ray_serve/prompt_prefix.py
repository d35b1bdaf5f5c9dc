"""Hashes the beginning of a prompt in blocks, before tokenization.

The keys are a chain: each hashes its block and the previous key, so two prompts share as many
leading keys as they share leading blocks. The first key continues the model's name and the salt, so
tenants that share no cache share no keys. A wrong key only affects which replica gets a request.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

BLOCK = 64  # bytes of text in a block
BLOCK_TOKENS = 16  # mean number of tokens in a block
# maximum number of blocks of one prompt: prompts that agree in 128 KiB rarely differ later
MOST_BLOCKS = 2048
_KEY = 8  # bytes of a hash key

# Request fields, in all protocols, that separate tenants; the hash chain begins with them.
_TENANT = ("model", "cache_salt")
_PROMPT = ("system", "instructions", "tools", "functions", "messages", "prompt", "input")
# Fields that no template writes, and that clients move between messages as a conversation grows.
_UNWRITTEN = frozenset({"cache_control"})


def block_keys(request: Any) -> bytes:
    """Hash the prompt's whole blocks.

    Args:
        request: the JSON of a body, in any protocol.

    Returns:
        The int64 keys as bytes, ready to be sent; b"" if there is no prompt.
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
    """Return the int64 keys in the bytes that `block_keys` returned."""
    return array("q", keys)


def _blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the whole blocks of a text given in pieces, at most MOST_BLOCKS."""
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
    """Yield the texts of a prompt; additions to a conversation come last."""
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
        if value and type(value[0]) is int:  # the prompt is a list of token ids
            yield " ".join(map(str, value[: BLOCK * MOST_BLOCKS])).encode()
            return
        for item in value:
            yield b"\x1e"
            yield from _texts(item)
    else:
        yield repr(value).encode()

"""Reads a tokenizer.json, at conversion to refuse a damaged one, and for use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from wherry.errors import ModelError

MOST_IDS = 2**24  # a hundred times the largest vocabulary


def read_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json with the library.

    Raises:
        ModelError: it is damaged, or cannot encode.
    """
    with _explained(path):
        return _checked(tokenizers.Tokenizer.from_file(str(path)))


def _checked(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Encode and decode once, which finds errors that reading does not.

    Raises:
        ValueError: an id is so large that tables by id would fill the memory.
    """
    largest = max(backend.get_vocab(with_added_tokens=True).values(), default=0)
    if largest >= MOST_IDS:
        raise ValueError(f"it has a token of id {largest}; ids go to {MOST_IDS - 1}")
    ids = backend.encode("Hello, wörld 1!", add_special_tokens=True).ids
    backend.decode(ids, skip_special_tokens=False)
    return backend


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Convert the library's bare exceptions and panics, which are no Exception."""
    try:
        yield
    except BaseException as e:
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        text = str(e).strip() or type(e).__name__
        raise ModelError(f"{path} cannot be read: {text}") from e

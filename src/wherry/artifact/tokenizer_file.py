"""Reads tokenizer.json: when a model is converted, to reject a damaged file, and at use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from wherry.errors import ModelError

MOST_IDS = 2**24  # largest accepted number of ids, a hundred times the largest known vocabulary


def read_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Read a tokenizer.json with the library `tokenizers`.

    Raises:
        ModelError: the file is damaged, or the tokenizer cannot encode.
    """
    with _explained(path):
        return _checked(tokenizers.Tokenizer.from_file(str(path)))


def _checked(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Encode and decode a text once, which finds errors that reading does not.

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
    """Convert the library's bare exceptions and panics (no Exception) to ModelError."""
    try:
        yield
    except BaseException as e:
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        text = str(e).strip() or type(e).__name__
        raise ModelError(f"{path} cannot be read: {text}") from e

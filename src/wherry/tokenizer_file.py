"""Reading a tokenizer.json, at conversion to refuse a damaged one, and for use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tokenizers

from .errors import ModelError

MOST_IDS = 2**24  # a hundred times what the largest vocabulary has


def read_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """The library's tokenizer of a tokenizer.json.

    Raises:
        ModelError: a damaged file, or a tokenizer that cannot encode.
    """
    with _explained(path):
        return _checked(tokenizers.Tokenizer.from_file(str(path)))


def _checked(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Encode and decode once: what is wrong inside is often found then and not before.

    Raises:
        ValueError: an id so large that tables of them would fill the memory.
    """
    largest = max(backend.get_vocab(with_added_tokens=True).values(), default=0)
    if largest >= MOST_IDS:
        raise ValueError(f"it has a token of id {largest}; ids go to {MOST_IDS - 1}")
    ids = backend.encode("Hello, wörld 1!", add_special_tokens=True).ids
    backend.decode(ids, skip_special_tokens=False)
    return backend


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Bare exceptions of the library, and its panics, which are no Exception, become ours."""
    try:
        yield
    except BaseException as e:
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        text = str(e).strip() or type(e).__name__
        raise ModelError(f"{path} cannot be read: {text}") from e

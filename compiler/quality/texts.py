"""The texts of quality cards and of calibration, and their tokens."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tokenizers
from pydantic import TypeAdapter, ValidationError

from wherry.artifact.tokenizer_file import read_tokenizer
from wherry.errors import ModelError, UsageError
from wherry.hub.names import folder_of

_FOLDER = Path(__file__).parent / "corpus"
_TOKENIZER = "tokenizer.json"
OWN = "wherry-evaluation.json"
_OWN = TypeAdapter(list[str])
MOST_BYTES = 16 << 20  # of a text that a user gives


@dataclass(frozen=True, slots=True)
class Text:
    """Documents that a model reads one after another, each without the others in its context."""

    documents: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Return a hash of all documents, which identifies the text in cards."""
        return hashlib.sha256("\0".join(self.documents).encode()).hexdigest()


def shipped(purpose: Literal["evaluation", "calibration"]) -> Text:
    """Return a text that comes with Wherry: English, code and other languages.

    The two texts have no sentence in common, so a card says nothing about its calibration.
    """
    files = sorted((_FOLDER / purpose).glob("*.txt"))
    return Text(tuple(path.read_text(encoding="utf-8") for path in files))


def evaluation_of(model: str) -> Text:
    """Return the text on which a MODEL is compared: that of its folder, if it has one.

    A model that knows only a small world, as the demo, has texts of this world as a JSON list in
    wherry-evaluation.json; on others its numbers would say nothing.

    Raises:
        UsageError: that file is no list of texts.
    """
    path = folder_of(model) / OWN
    if not path.is_file():
        return shipped("evaluation")
    try:
        return Text(tuple(_OWN.validate_json(path.read_bytes())))
    except ValidationError as e:
        raise UsageError(
            f"{path} is not a JSON list of texts; remove it, or type --text FILE"
        ) from e


def given(path: Path) -> Text:
    """Read a user's text as one document.

    Raises:
        UsageError: the file cannot be read, is too large, empty, or not in UTF-8.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(
                f"{path} has {path.stat().st_size:,} bytes; a text has at most {MOST_BYTES:,}. "
                "Some thousand words are enough: give a part of it."
            )
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise UsageError(f"{path} cannot be read: {e.strerror}. Give a text file.") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"{path} is not UTF-8 text: {e}. Save it as UTF-8.") from e
    if not text.strip():
        raise UsageError(f"{path} is empty. Give a text of some hundred words or more.")
    return Text((text,))


def windows(text: Text, folder: Path, most: int) -> list[list[int]]:
    """Return the tokens of a text in windows of at most `most` tokens.

    Each window begins with the tokens that the tokenizer puts before a text (BOS), because some
    models predict nothing sensible without them.

    Args:
        text: the text.
        folder: a folder with tokenizer.json.
        most: the largest length of a window.

    Raises:
        ModelError: there is no tokenizer.json, or it is damaged.
    """
    path = folder / _TOKENIZER
    if not path.is_file():
        raise ModelError(f"{folder} has no {_TOKENIZER}, so no text can be read.")
    tokenizer = read_tokenizer(path)
    first = _prefix(tokenizer)
    step = max(1, most - len(first))
    parts = []
    for document in text.documents:
        ids = tokenizer.encode(document, add_special_tokens=False).ids
        parts += [[*first, *ids[i : i + step]] for i in range(0, len(ids), step)]
    return [ids for ids in parts if len(ids) > 1]  # one token predicts nothing that is known


def _prefix(tokenizer: tokenizers.Tokenizer) -> list[int]:
    """Return the special tokens that the tokenizer puts before a text."""
    encoded = tokenizer.encode("a", add_special_tokens=True)
    plain = encoded.special_tokens_mask.index(0) if 0 in encoded.special_tokens_mask else 0
    return list(encoded.ids[:plain])

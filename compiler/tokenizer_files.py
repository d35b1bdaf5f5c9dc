"""Converts older tokenizer formats to tokenizer.json.

The formats are SentencePiece's tokenizer.model, tiktoken's ranks under the same or other names,
Mistral's tekken.json, and BPE's vocab.json with merges.txt. transformers has the converters, and
reads tokenizer.model with the library of its format; the extra `wherry[tokenizers]` installs all of
them. Ranks of models whose rule transformers does not have are read in tiktoken_ranks.py.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from wherry.base import extras
from wherry.errors import ModelError, ToolchainError
from wherry.hub.file_names import QWEN_RANKS, RANKS, TEKKEN

from .checkpoint.folder import TOKENIZER, ModelFolder


def fingerprint(files: tuple[Path, ...]) -> str:
    """Return a hash that changes with the content of `files`."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def tokenizer_json(folder: ModelFolder) -> bytes:
    """Convert the folder's tokenizer; return the content of tokenizer.json.

    Raises:
        ToolchainError: the libraries that read these files are not installed.
        ModelError: the libraries cannot convert these files.
    """
    files = folder.older_tokenizer
    given = [path.name for path in files]
    names = ", ".join(given)
    if RANKS in given or QWEN_RANKS in given:
        from . import tiktoken_ranks  # imports gguf, which no other model needs

        return str(tiktoken_ranks.convert(folder).to_str()).encode()
    if lacking := [m for m in _libraries(files) if not extras.installed(m)]:
        raise ToolchainError(
            f"{folder.path} has no {TOKENIZER} but {names}, which {' and '.join(lacking)} would "
            f"read. Type: {extras.TOKENIZERS}"
        )
    try:
        text = _tekken(folder.path) if TEKKEN in given else _converted(folder.path)
    except Exception as e:  # the converters raise many classes of errors
        reason = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
        raise ModelError(
            f"No tokenizer can be built from {names} in {folder.path} ({reason}). "
            f"Put a {TOKENIZER} into their folder."
        ) from e
    return text.encode()


def _libraries(files: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the Python packages that read a folder's tokenizer."""
    models = [path for path in files if path.suffix == ".model"]
    formats = {"tiktoken" if _has_ranks(path) else "sentencepiece" for path in models}
    return ("transformers", *sorted(formats))


def _has_ranks(path: Path) -> bool:
    """Return whether a file has tiktoken's lines of text, and not SentencePiece's binary form."""
    with path.open("rb") as f:
        return re.match(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\s", f.read(1024)) is not None


def _tekken(folder: Path) -> str:
    from transformers.integrations.mistral.tokenizer import MistralConverter

    return str(MistralConverter(vocab_file=str(folder / TEKKEN)).converted().to_str())


def _converted(folder: Path) -> str:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return str(tokenizer.backend_tokenizer.to_str())

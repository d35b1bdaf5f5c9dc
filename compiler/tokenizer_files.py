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
from wherry.hub.file_names import OLDER_TOKENIZERS, QWEN_RANKS, RANKS, TEKKEN

TOKENIZER = "tokenizer.json"
_ABOUT = ("merges.txt", "added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")


def older(folder: Path) -> tuple[Path, ...]:
    """Return the files that `tokenizer_json` converts; () if it exists, or no older format does."""
    found = tuple(folder / name for name in OLDER_TOKENIZERS if (folder / name).is_file())
    if not found or (folder / TOKENIZER).is_file():
        return ()
    return (*found, *(folder / name for name in _ABOUT if (folder / name).is_file()))


def fingerprint(files: tuple[Path, ...]) -> str:
    """Return a hash that changes with the content of `files`."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def tokenizer_json(folder: Path) -> bytes:
    """Convert the folder's tokenizer; return the content of tokenizer.json.

    Raises:
        ToolchainError: the libraries that read these files are not installed.
        ModelError: the libraries cannot convert these files.
    """
    files = older(folder)
    names = ", ".join(path.name for path in files)
    if {RANKS, QWEN_RANKS} & {path.name for path in files}:
        from . import tiktoken_ranks  # imports gguf, which no other model needs

        return str(tiktoken_ranks.convert(folder).to_str()).encode()
    if lacking := [m for m in _libraries(files) if not extras.installed(m)]:
        raise ToolchainError(
            f"{folder} has no {TOKENIZER} but {names}, which {' and '.join(lacking)} would read. "
            f"Type: {extras.TOKENIZERS}"
        )
    try:
        text = _tekken(folder) if (folder / TEKKEN).is_file() else _converted(folder)
    except Exception as e:  # the converters raise many classes of errors
        reason = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
        raise ModelError(
            f"No tokenizer can be built from {names} in {folder} ({reason}). "
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

    made = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return str(made.backend_tokenizer.to_str())

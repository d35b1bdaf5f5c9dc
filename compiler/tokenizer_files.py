"""Converts older tokenizer formats to tokenizer.json.

The formats are SentencePiece's tokenizer.model, tiktoken's ranks under the same name, Mistral's
tekken.json, and BPE's vocab.json with merges.txt. transformers has the converters, and reads the
first two with the libraries of these formats; the extra `wherry[tokenizers]` installs all of them.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from wherry.base import extras
from wherry.errors import ModelError, ToolchainError
from wherry.hub.file_names import OLDER_TOKENIZERS, TEKKEN

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
    names = ", ".join(path.name for path in older(folder))
    lacking = [m for m in ("transformers", "sentencepiece", "tiktoken") if not extras.installed(m)]
    if lacking:
        raise ToolchainError(
            f"{folder} has no {TOKENIZER} but {names}, which {' and '.join(lacking)} would read. "
            f"Type: {extras.TOKENIZERS}"
        )
    try:
        text = _tekken(folder) if (folder / TEKKEN).is_file() else _converted(folder)
    except Exception as e:  # the converters raise many classes of errors
        reason = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
        raise ModelError(
            f"No tokenizer can be made of {names} in {folder} ({reason}). "
            f"Put a {TOKENIZER} into their folder."
        ) from e
    return text.encode()


def _tekken(folder: Path) -> str:
    from transformers.integrations.mistral.tokenizer import MistralConverter

    return str(MistralConverter(vocab_file=str(folder / TEKKEN)).converted().to_str())


def _converted(folder: Path) -> str:
    from transformers import AutoTokenizer

    made = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return str(made.backend_tokenizer.to_str())

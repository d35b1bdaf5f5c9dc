"""A tokenizer.json for models that have only what older tokenizers were stored in.

SentencePiece's tokenizer.model, tiktoken's ranks under the same name, Mistral's tekken.json, BPE's
vocab.json and merges.txt: transformers has the converters, and reads the first two through the
libraries that own the formats. All of it is the extra `wherry[tokenizers]`.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from wherry.errors import ModelError, ToolchainError

TOKENIZER = "tokenizer.json"
INSTALL = "pip install 'wherry[tokenizers]'"
TEKKEN = "tekken.json"
# What a tokenizer is made of, of which there has to be one, and what says how it is used.
OLDER = (TEKKEN, "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json")
_ABOUT = ("merges.txt", "added_tokens.json", "special_tokens_map.json", "tokenizer_config.json")


def older(folder: Path) -> tuple[Path, ...]:
    """The files that `tokenizer_json` reads; () beside a tokenizer.json, or if there are none."""
    found = tuple(folder / name for name in OLDER if (folder / name).is_file())
    if not found or (folder / TOKENIZER).is_file():
        return ()
    return (*found, *(folder / name for name in _ABOUT if (folder / name).is_file()))


def fingerprint(files: tuple[Path, ...]) -> str:
    """Changes if one of the files does."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def tokenizer_json(folder: Path) -> bytes:
    """What a tokenizer.json of the folder would be.

    Raises:
        ToolchainError: the libraries that read these files are not installed.
        ModelError: they cannot make a tokenizer of them.
    """
    names = ", ".join(path.name for path in older(folder))
    lacking = [m for m in ("transformers", "sentencepiece", "tiktoken") if not _is_here(m)]
    if lacking:
        raise ToolchainError(
            f"{folder} has no {TOKENIZER} but {names}, which {' and '.join(lacking)} would read. "
            f"Type: {INSTALL}"
        )
    try:
        text = _tekken(folder) if (folder / TEKKEN).is_file() else _converted(folder)
    except Exception as e:  # the converters raise of many kinds
        reason = (str(e).strip().splitlines() or [type(e).__name__])[0][:200]
        raise ModelError(
            f"No tokenizer can be made of {names} in {folder} ({reason}). "
            f"Put a {TOKENIZER} beside them."
        ) from e
    return text.encode()


def _is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _tekken(folder: Path) -> str:
    from transformers.integrations.mistral.tokenizer import MistralConverter

    return str(MistralConverter(vocab_file=str(folder / TEKKEN)).converted().to_str())


def _converted(folder: Path) -> str:
    from transformers import AutoTokenizer

    made = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return str(made.backend_tokenizer.to_str())

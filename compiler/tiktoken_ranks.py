"""Converts tiktoken's rank files to tokenizer.json: Kimi's tiktoken.model, Qwen's qwen.tiktoken.

A line of such a file is a token in base64 and its rank, which is its id. The rule that splits text
and the special tokens stand in a Python program of the model, which is never run; the rules of
these models are known here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, models

from wherry.errors import ModelError, listing, shown
from wherry.hub.file_names import QWEN_RANKS, RANKS

from .checkpoint.folder import ModelFolder
from .checkpoint.gguf.pre_tokenizers import PRE_TOKENIZERS
from .checkpoint.gguf.tokenizer import set_split

_CONFIG = "tokenizer_config.json"
_KIMI_CLASS = "TikTokenTokenizer"  # of Moonshot's models
_KIMI_SPECIAL = 256  # special tokens after the ranks; those without a name are reserved
_QWEN_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_QWEN_EXTRA = 205  # tokens <|extra_N|> after them
_MOST_RANKS = 2**20


def convert(folder: ModelFolder) -> Tokenizer:
    """Return the tokenizer of a folder with RANKS or QWEN_RANKS.

    Raises:
        ModelError: the file is damaged, or the rule that splits text is not known.
    """
    path, config = folder.path, folder.tokenizer_config
    if (path / QWEN_RANKS).is_file():
        ranks = read_ranks(path / QWEN_RANKS)
        extra = [f"<|extra_{i}|>" for i in range(_QWEN_EXTRA)]
        return _built(ranks, "qwen2", _numbered(ranks, [*_QWEN_SPECIAL, *extra]))
    name = _class_of(config)
    if name != _KIMI_CLASS:
        raise ModelError(
            f"{path / RANKS} is split by the rule of {shown(name)} ({_CONFIG}), a program of the "
            f"model's that Wherry does not run; it knows {_KIMI_CLASS} (Kimi) and {QWEN_RANKS}"
        )
    ranks = read_ranks(path / RANKS)
    names = [f"<|reserved_token_{len(ranks) + i}|>" for i in range(_KIMI_SPECIAL)]
    special = _numbered(ranks, names) | _named(config, path / _CONFIG, len(ranks))
    return _built(ranks, "kimi-k2", special)


def read_ranks(path: Path) -> dict[bytes, int]:
    """Return the rank of each token: all from 0 on, with every single byte among them.

    Raises:
        ModelError: a line is of another form, or ranks are missing or twice.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines()):
        token, _, rank = line.partition(b" ")
        try:
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (binascii.Error, ValueError) as e:
            raise ModelError(
                f"{path}, line {number + 1} is no token and rank: {line[:80]!r}"
            ) from e
    complete = sorted(ranks.values()) == list(range(len(ranks))) and b"" not in ranks
    if not complete or len(ranks) > _MOST_RANKS or any(bytes([b]) not in ranks for b in range(256)):
        raise ModelError(
            f"{path} has {len(ranks)} different tokens, and not the ranks from 0 on of up to "
            f"{_MOST_RANKS} tokens with all 256 bytes among them"
        )
    return ranks


def _class_of(config: Mapping[str, Any]) -> str | None:
    """Return the name of the class that transformers would load."""
    auto = config.get("auto_map")
    named = auto.get("AutoTokenizer") if isinstance(auto, Mapping) else None
    first = named[0] if isinstance(named, list) and named else named
    if not isinstance(first, str):
        first = config.get("tokenizer_class")
    return first.rpartition(".")[2] if isinstance(first, str) else None


def _numbered(ranks: Mapping[bytes, int], names: list[str]) -> dict[int, AddedToken]:
    return {
        len(ranks) + i: AddedToken(name, special=True, normalized=False)
        for i, name in enumerate(names)
    }


def _named(config: Mapping[str, Any], path: Path, first: int) -> dict[int, AddedToken]:
    """Return the special tokens that tokenizer_config.json names, by id."""
    given = config.get("added_tokens_decoder") or {}
    if not isinstance(given, Mapping):
        raise ModelError(f"{path}: added_tokens_decoder is {shown(given)}; it is an object")
    tokens = {}
    for key, entry in given.items():
        content = entry.get("content") if isinstance(entry, Mapping) else None
        number = int(key) - first if key.isdecimal() and len(key) < 10 else -1
        if not isinstance(content, str) or not content or not 0 <= number < _KIMI_SPECIAL:
            raise ModelError(
                f"{path}: added_tokens_decoder has {shown(key)}: {shown(entry)}; the ids are "
                f"{first} to {first + _KIMI_SPECIAL - 1}, each with its content"
            )
        special = entry.get("special") is not False
        tokens[first + number] = AddedToken(content, special=special, normalized=False)
    return tokens


def _built(
    ranks: Mapping[bytes, int], rule_name: str, special: Mapping[int, AddedToken]
) -> Tokenizer:
    """Return byte-level BPE that merges as tiktoken does: the pair with the lowest rank first."""
    characters = _alphabet()
    text = {token: "".join(characters[b] for b in token) for token in ranks}
    merges = [
        (text[token[:cut]], text[token[cut:]])
        for token in sorted(ranks, key=ranks.__getitem__)
        for cut in sorted(
            (c for c in range(1, len(token)) if token[:c] in ranks and token[c:] in ranks),
            key=lambda c, t=token: (ranks[t[:c]], ranks[t[c:]]),  # type: ignore[misc]
        )
    ]
    vocab = {text[token]: rank for token, rank in ranks.items()}
    # A piece that is a token is taken as it is, before any merge.
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    set_split(tokenizer, PRE_TOKENIZERS[rule_name])
    tokenizer.add_tokens([special[i] for i in sorted(special)])
    if wrong := [t.content for i, t in special.items() if tokenizer.token_to_id(t.content) != i]:
        raise ModelError(f"Special tokens are named twice: {listing(wrong, limit=8)}")
    return tokenizer


def _alphabet() -> list[str]:
    """GPT-2's character for each byte: printable ones stand for themselves."""
    shown_as = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(b if b in shown_as else next(others)) for b in range(256)]

"""Reads the vocabulary of a GGUF file: the tokens, their kinds, and the special tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wherry.errors import ModelError, listing, shown

from .header import Header

_PREFIX = "tokenizer.ggml."
# Names of tokens that end a turn, from llama.cpp; GGUF files often list only one of them.
_ENDS = frozenset(
    {
        *("<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>"),
        *("<|calls|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>"),
        *("_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>"),
        *("<turn|>", "<|tool_response>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "[e~["),
    }
)
# Role of a special token -> metadata field of its id.
_ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "pad": "padding_token_id",
    "sep": "seperator_token_id",  # the misspelling is part of the format
    "cls": "cls_token_id",
}
_NO_TOKEN = 2**32 - 1  # the id that converters write for none
_ENDING = ("eos_token_id", "eot_token_id", "eom_token_id")


class Kind(IntEnum):
    """The kind of a token, with the codes of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufVocabulary:
    """The tokens, in the order of their ids; all texts are distinct."""

    model: str  # tokenizer model: "gpt2", "llama", "bert", ...
    pre: str  # rule that splits text before BPE, see pre_tokenizers.py
    tokens: tuple[str, ...]
    kinds: NDArray[np.int64]  # [tokens], values of `Kind`
    scores: NDArray[np.float64] | None  # [tokens]; None if the file has none
    merges: tuple[str, ...]
    roles: Mapping[str, int]  # ids of special tokens by role, such as "bos"
    ends: tuple[int, ...]  # ids of tokens that end a text or a turn
    flags: Mapping[str, bool]  # boolean metadata fields, such as "add_bos_token"

    def text(self, role: str) -> str | None:
        """Return the text of the token with a role, or None."""
        return self.tokens[self.roles[role]] if role in self.roles else None


def vocabulary_of(header: Header) -> GgufVocabulary:
    """Read the vocabulary from the metadata of a file.

    Raises:
        ModelError: the vocabulary is missing or damaged; lists all problems.
    """
    fields = {
        key.removeprefix(_PREFIX): value
        for key, value in header.metadata.items()
        if key.startswith(_PREFIX)
    }
    problems: list[str] = []
    tokens = _texts(fields, "tokens", problems)
    count = len(tokens)
    kinds = _numbers(fields, "token_type", count, problems, "iu")
    if kinds is not None and ((kinds < 0) | (kinds > max(Kind))).any():
        problems.append(
            f"token_type: found {_outside(kinds)}, expected numbers up to {max(Kind):d}"
        )
    scores = _numbers(fields, "scores", count, problems, "iuf")
    if scores is not None and np.isnan(scores).any():
        problems.append("scores: found NaN")
    problems += [
        f"{name}: found {shown(fields[name])}, expected one of {count} tokens"
        for name in _ENDING
        if fields.get(name, _NO_TOKEN) != _NO_TOKEN and not _is_id(fields[name], count)
    ]
    ids = {name: fields[name] for name in {*_ROLES.values(), *_ENDING} if name in fields}
    wrong = [n for n, i in ids.items() if not _is_id(i, count)]
    # Some files have ids of padding or of BOS outside of their vocabulary; llama.cpp ignores them,
    # too. Without its end a text does not stop, so that one is a problem above.
    ids = {n: i for n, i in ids.items() if n not in wrong}
    model, pre = fields.get("model"), fields.get("pre", "default")
    if not isinstance(model, str) or not isinstance(pre, str):
        problems.append(f"model: found {shown(model)} and pre {shown(pre)}, expected names")
    if not count:
        problems.append("tokens: missing")
    if problems:
        raise ModelError(
            f"{header.path} has no tokenizer that can be read:\n"
            f"{listing(_PREFIX + problem for problem in problems)}"
        )
    kinds = np.full(count, Kind.NORMAL, np.int64) if kinds is None else kinds.astype(np.int64)
    named = [i for i, token in enumerate(tokens) if token in _ENDS]
    kinds[named] = Kind.CONTROL  # some files say that they are text, which would be split
    ends = [*(ids[name] for name in _ENDING if name in ids), *named]
    return GgufVocabulary(
        model=str(model),
        pre=str(pre),
        tokens=_distinct(tokens),
        kinds=kinds,
        scores=None if scores is None else scores.astype(np.float64),
        merges=tuple(_texts(fields, "merges", [])),
        roles={role: ids[name] for role, name in _ROLES.items() if name in ids},
        ends=tuple(dict.fromkeys(ends)),
        flags={name: value for name, value in fields.items() if isinstance(value, bool)},
    )


def _texts(fields: Mapping[str, Any], name: str, problems: list[str]) -> list[str]:
    """Return a list of strings; if the field has another type, add a problem and return []."""
    value = fields.get(name, [])
    if isinstance(value, list):
        return value
    problems.append(f"{name}: found {shown(value)}, expected a list of texts")
    return []


def _numbers(
    fields: Mapping[str, Any], name: str, count: int, problems: list[str], dtypes: str
) -> NDArray[Any] | None:
    """Return an array [count]; None if the field is absent or, with a problem added, invalid."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.shape == (count,) and value.dtype.kind in dtypes:
        return value
    kind = "a number" if "f" in dtypes else "an integer"
    problems.append(f"{name}: expected {kind} for each of {count} tokens")
    return None


def _is_id(value: object, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def _outside(kinds: NDArray[Any]) -> str:
    return shown(sorted({int(k) for k in kinds} - {int(k) for k in (0, *Kind)})[0])


def _distinct(tokens: list[str]) -> tuple[str, ...]:
    """Replace empty and repeated texts by "[UNUSED_ID]"; the last of equal texts remains."""
    last = {token: i for i, token in enumerate(tokens)}
    return tuple(
        token if token and last[token] == i else f"[UNUSED_{i}]" for i, token in enumerate(tokens)
    )

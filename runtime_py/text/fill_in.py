"""Filling a gap between two texts, for models that were trained on it.

How the texts are joined is no part of any file of a model; the tokens that only one way of joining
uses are. So a model's vocabulary tells its way.
"""
# ruff: noqa: RUF001 - DeepSeek's marks are written with U+FF5C

from __future__ import annotations

from dataclasses import dataclass

from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class FillIn:
    """Marks, and what follows them.

    Attributes:
        before_prefix, before_suffix: marks of the two texts.
        last: the mark after both; "" if there is none.
        suffix_first: whether the suffix comes before the prefix.
    """

    before_prefix: str
    before_suffix: str
    last: str = ""
    suffix_first: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(m for m in (self.before_prefix, self.before_suffix, self.last) if m)


WAYS = (
    FillIn("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen2.5-Coder, CodeGemma, Yi
    FillIn("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    FillIn("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    FillIn("▁<PRE>", "▁<SUF>", "▁<MID>"),  # CodeLlama
    FillIn("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
    FillIn("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM-4, CodeGeeX4
    FillIn("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", True),  # Seed-Coder
    FillIn("[PREFIX]", "[SUFFIX]", suffix_first=True),  # Codestral
)
# What such models write when the gap is filled, beside the end of the text.
_ENDS = (
    *(mark for way in WAYS for mark in way.marks),
    "<|endoftext|>",
    "▁<EOT>",
    "<|fim_pad|>",
    "<fim_pad>",
    "<fim-pad>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<file_sep>",
    "<|file_separator|>",
)


def way_of(tokenizer: Tokenizer) -> FillIn | None:
    """How a model fills gaps; None: it was not trained on it."""
    known = tokenizer.backend.token_to_id
    return next((w for w in WAYS if all(known(m) is not None for m in w.marks)), None)


def prompt(tokenizer: Tokenizer, way: FillIn, prefix: list[int], suffix: str) -> list[int]:
    """The tokens after which the model writes what stands between.

    Args:
        tokenizer: the model's.
        way: how it fills gaps.
        prefix: tokens of the text before the gap; a beginning of text among them stays first.
        suffix: the text after it.
    """
    start = [i for i in tokenizer.encode("") if i not in tokenizer.eos_ids]
    if prefix[: len(start)] == start:
        prefix = prefix[len(start) :]
    else:
        start = []
    first = [*_mark(tokenizer, way.before_prefix), *prefix]
    second = [*_mark(tokenizer, way.before_suffix), *_inner(tokenizer, suffix)]
    parts = (second, first) if way.suffix_first else (first, second)
    return [*start, *parts[0], *parts[1], *_mark(tokenizer, way.last)]


def stop_ids(tokenizer: Tokenizer) -> list[int]:
    """Tokens that end what fills a gap."""
    found = (tokenizer.backend.token_to_id(name) for name in _ENDS)
    return list(dict.fromkeys(i for i in found if i is not None))


def _mark(tokenizer: Tokenizer, name: str) -> list[int]:
    found = tokenizer.backend.token_to_id(name) if name else None
    return [] if found is None else [found]


def _inner(tokenizer: Tokenizer, text: str) -> list[int]:
    """Tokens of a text that is not the beginning of one: without the space that some put first."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    if tokenizer.token_bytes is None or not tokenizer.token_bytes.strip:
        return ids
    before = tokenizer.encode("\n", add_special_tokens=False)
    whole = tokenizer.encode(f"\n{text}", add_special_tokens=False)
    return whole[len(before) :] if whole[: len(before)] == before else ids

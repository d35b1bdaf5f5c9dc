"""Builds prompts for models that were trained to fill a gap between two texts.

No file of a model says how the two texts are joined, but each convention has special tokens, so the
vocabulary tells the convention.
"""
# ruff: noqa: RUF001 - DeepSeek's marks are written with U+FF5C

from __future__ import annotations

from dataclasses import dataclass

from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class FillIn:
    """The special tokens of one fill-in-the-middle convention, and their order.

    Attributes:
        before_prefix: token before the text that precedes the gap.
        before_suffix: token before the text that follows the gap.
        last: the token after both texts; "" if there is none.
        suffix_first: whether the suffix comes before the prefix.
    """

    before_prefix: str
    before_suffix: str
    last: str = ""
    suffix_first: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """Return all special tokens of the convention."""
        return tuple(m for m in (self.before_prefix, self.before_suffix, self.last) if m)


WAYS = (
    # models: Qwen2.5-Coder, CodeGemma, Yi
    FillIn("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    FillIn("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # models: StarCoder, Granite
    FillIn("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # models: SantaCoder
    FillIn("▁<PRE>", "▁<SUF>", "▁<MID>"),  # models: CodeLlama
    FillIn("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # models: DeepSeek-Coder
    FillIn("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # models: GLM-4, CodeGeeX4
    FillIn("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", True),  # models: Seed-Coder
    FillIn("[PREFIX]", "[SUFFIX]", suffix_first=True),  # models: Codestral
)
# Tokens that fill-in-the-middle models write after the gap, besides the end-of-text token.
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
    """Return the fill-in-the-middle convention of a model; None: it was not trained for it."""
    known = tokenizer.backend.token_to_id
    return next((w for w in WAYS if all(known(m) is not None for m in w.marks)), None)


def prompt(tokenizer: Tokenizer, way: FillIn, prefix: list[int], suffix: str) -> list[int]:
    """Return the prompt after which the model writes the gap.

    Args:
        tokenizer: the tokenizer of the model.
        way: the model's fill-in-the-middle convention.
        prefix: tokens before the gap; a BOS token among them stays first.
        suffix: the text after the gap.
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
    """Return the token ids that end the text of a gap."""
    found = (tokenizer.backend.token_to_id(name) for name in _ENDS)
    return list(dict.fromkeys(i for i in found if i is not None))


def _mark(tokenizer: Tokenizer, name: str) -> list[int]:
    found = tokenizer.backend.token_to_id(name) if name else None
    return [] if found is None else [found]


def _inner(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the tokens of a text inside of a text, without the space that some tokenizers add."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    if tokenizer.token_bytes is None or not tokenizer.token_bytes.strip:
        return ids
    before = tokenizer.encode("\n", add_special_tokens=False)
    whole = tokenizer.encode(f"\n{text}", add_special_tokens=False)
    return whole[len(before) :] if whole[: len(before)] == before else ids

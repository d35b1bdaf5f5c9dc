"""A text's length in tokens is bounded before it is tokenized."""

from __future__ import annotations

import random

import pytest
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from wherry.runtime.caller import Abandoned, Caller
from wherry.runtime.text import tokenizer as tokenizer_module
from wherry.runtime.text.token_cover import token_cover
from wherry.runtime.text.tokenizer import Tokenizer, TooManyTokens

from . import small_tokenizers as small
from .text_streams import random_text


def composing() -> Backend:
    backend = small.byte_level()
    backend.normalizer = normalizers.NFC()
    return backend


BOUNDED = {
    "byte_level": small.byte_level,
    "byte_fallback": small.byte_fallback,
    "byte_fallback_unstripped": lambda: small.byte_fallback(strip=False),
    "composing": composing,
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_the_bound_is_one(kind):
    backend = BOUNDED[kind]()
    cover = token_cover(backend)
    assert cover is not None
    rng = random.Random(7)
    texts = [random_text(rng, 200) for _ in range(300)]
    texts += ["Once upon time " * 50, "▁" * 40, " " * 40, "日本" * 30, "e\u0301" * 50, "각" * 30]
    texts += ["가\u11a8" * 20, "</s>" * 30, ""]
    for text in texts:
        count = len(backend.encode(text, add_special_tokens=False).ids)
        assert cover.at_least(text) <= count, text


def test_it_is_near():
    cover = token_cover(small.byte_level())
    assert cover.at_least("Once" * 1000) > 500  # special tokens have letters, too
    assert cover.at_least("q" * 1000) > 400  # in no word: only in a short token


def stripping() -> Backend:
    backend = small.byte_level()
    backend.add_special_tokens([AddedToken("<x>", rstrip=True)])
    return backend


def removing() -> Backend:
    backend = small.byte_level()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return backend


def collapsing() -> Backend:
    backend = small.byte_level()
    backend.normalizer = normalizers.Replace(Regex(" +"), " ")
    return backend


def lowering() -> Backend:
    backend = small.byte_level()
    backend.normalizer = normalizers.Lowercase()
    return backend


def incomplete() -> Backend:
    backend = small.byte_level()
    backend.model = models.BPE(vocab={"a": 0, "b": 1}, merges=[])  # drops all else
    return backend


@pytest.mark.parametrize(
    "build",
    [small.metaspace, small.word_piece, stripping, removing, collapsing, lowering, incomplete],
)
def test_where_a_token_may_stand_for_anything_there_is_none(build):
    assert token_cover(build()) is None


def counting(backend, monkeypatch):
    """A tokenizer, and the characters that it has tokenized."""
    tokenizer = Tokenizer(backend)
    seen: list[int] = []
    encode = tokenizer.encode

    def counted(text, **options):
        seen.append(len(text))
        return encode(text, **options)

    monkeypatch.setattr(tokenizer, "encode", counted)
    return tokenizer, seen


@pytest.mark.parametrize("build", [small.byte_level, small.word_piece])
def test_what_is_far_too_long_is_not_tokenized(build, monkeypatch):
    tokenizer, seen = counting(build(), monkeypatch)
    with pytest.raises(TooManyTokens) as e:
        tokenizer.encode_at_most("a" * 15_000_000, 4096, Caller())
    assert seen == []
    assert e.value.at_least > 4096


def test_what_the_bound_lets_through_is_counted_in_blocks(monkeypatch):
    """ "q" is in a token of one letter, "a" in long ones: the bound is far off for the latter."""
    tokenizer, seen = counting(small.word_piece(), monkeypatch)
    with pytest.raises(TooManyTokens):
        tokenizer.encode_at_most("a. " * 2_000_000, 200_000, Caller())
    assert 0 < sum(seen) < 1_000_000


def test_a_text_that_fits_is_complete(monkeypatch):
    tokenizer, seen = counting(small.byte_level(), monkeypatch)
    text = "Once upon a time, the cat sat. " * 20_000
    assert tokenizer.encode_at_most(text, 400_000, Caller()) == tokenizer.encode(text)
    assert sum(seen) == 3 * len(text)


def test_a_caller_who_goes_ends_it(monkeypatch):
    caller = Caller()
    tokenizer, seen = counting(small.byte_level(), monkeypatch)
    encode = tokenizer.encode

    def leave(text, **options):
        caller.gone = True
        return encode(text, **options)

    monkeypatch.setattr(tokenizer, "encode", leave)
    with pytest.raises(Abandoned):
        tokenizer.encode_at_most("a" * 1_000_000, 10**6, caller)
    assert sum(seen) == tokenizer_module._BLOCK

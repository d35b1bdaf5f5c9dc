"""Sampling extensions from the request to the core's parameters; echo."""

from __future__ import annotations

import pytest

from wherry.runtime import MLCEngine, RequestError
from wherry.runtime.core.interface import SamplingParams
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .conftest import core_of

HI = [{"role": "user", "content": "the cat"}]
TEXT = "sat upon"


@pytest.fixture
def engine(make):
    return MLCEngine.of(make(TEXT))


def params_of(engine: MLCEngine, **fields) -> SamplingParams:
    engine.chat.completions.create(messages=HI, **fields)
    return core_of(engine.loaded).added[-1][1]


def test_what_is_not_requested_changes_nothing(engine):
    params = params_of(engine, seed=3)
    core = core_of(engine.loaded)
    plain = SamplingParams(
        seed=3, max_tokens=params.max_tokens, stop_ids=engine.loaded.tokenizer.eos_ids
    )
    assert core.added[-1][1] == plain


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"dynatemp_range": 0.3, "dynatemp_exponent": 2}, {"dynamic_range": 0.3}),
        ({"dynatemp_exponent": 2}, {"dynamic_exponent": 2}),
        ({"typical_p": 0.4, "top_n_sigma": 1.5}, {"typical_p": 0.4, "top_n_sigma": 1.5}),
        ({"top_n_sigma": -1}, {"top_n_sigma": 0}),
        ({"xtc_probability": 0.5}, {"xtc_probability": 0.5, "xtc_threshold": 0.1}),
        ({"xtc_probability": 0.5, "xtc_threshold": 0.7}, {"xtc_probability": 0}),
        ({"mirostat": 2}, {"mirostat_tau": 5, "mirostat_eta": 0.1}),
        ({"mirostat": 2, "mirostat_tau": 3, "mirostat_eta": 0.2}, {"mirostat_tau": 3}),
        ({"mirostat": 0, "mirostat_tau": 3}, {"mirostat_tau": 0}),
        ({"dry_multiplier": 0.8}, {"dry_multiplier": 0.8, "dry_base": 1.75, "dry_range": 0}),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": 64}, {"dry_range": 64}),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": -1}, {"dry_range": 0}),
        ({"dry_multiplier": 0.8, "dry_penalty_last_n": 0}, {"dry_multiplier": 0}),
        ({"dry_multiplier": 1, "dry_allowed_length": 4}, {"dry_allowed_length": 4}),
        ({"min_tokens": 3, "max_tokens": 3}, {"min_tokens": 3}),
        ({"allowed_token_ids": [5, 9, 5]}, {"allowed": (5, 9)}),
        ({"ignore_eos": True, "max_tokens": 3}, {"stop_ids": ()}),
        ({"priority": 4}, {"priority": -4}),  # lower goes first, as in vLLM
    ],
)
def test_extensions(engine, fields, expected):
    params = params_of(engine, **fields)
    assert {name: getattr(params, name) for name in expected} == expected


def test_bad_words_at_the_beginning_and_after_a_space(engine):
    encode = engine.loaded.tokenizer.encode
    params = params_of(engine, bad_words=["cat", "zz"])
    expected = (encode("cat"), encode(" cat"), encode("zz"), encode(" zz"))
    assert params.bad_words == tuple(tuple(ids) for ids in expected)
    assert len(params.bad_words[0]) == 1  # a word of the vocabulary
    assert len(params.bad_words[2]) == 2


@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback", "metaspace"])
def test_breakers_are_all_tokens_that_hold_one(kind):
    tokenizer = Tokenizer(getattr(small_tokenizers, kind)())
    ids = tokenizer.ids_with(["a"])
    texts = {tokenizer.backend.id_to_token(i) for i in ids}
    assert {"a", "cat"} <= {t.lstrip("▁Ġ") for t in texts}
    assert not {t for t in texts if "a" not in t and t != "<0x61>"}
    assert tokenizer.ids_with([]) == ()


def test_default_breakers(engine):
    params = params_of(engine, dry_multiplier=1)
    names = {engine.loaded.tokenizer.backend.id_to_token(i) for i in params.dry_breakers}
    assert names == {"Ċ", ":", '"', "*"}
    assert params_of(engine, dry_multiplier=1, dry_sequence_breakers=[]).dry_breakers == ()


def test_generation_config_may_name_typical_p(make):
    engine = MLCEngine.of(make(TEXT, defaults={"typical_p": 0.7}))
    assert params_of(engine).typical_p == 0.7
    assert params_of(engine, typical_p=1).typical_p == 1
    engine = MLCEngine.of(make(TEXT, defaults={"typical_p": 0.7, "do_sample": False}))
    assert params_of(engine).typical_p == 1


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"mirostat": 1}, "mirostat"),
        ({"min_tokens": 5, "max_tokens": 4}, "min_tokens"),
        ({"allowed_token_ids": []}, "allowed_token_ids"),
        ({"allowed_token_ids": [4000]}, "allowed_token_ids"),
        ({"bad_words": [""]}, "bad_words"),
        ({"typical_p": 0}, "typical_p"),
        ({"dry_allowed_length": 0}, "dry_allowed_length"),
        ({"xtc_probability": 1.5}, "xtc_probability"),
    ],
)
def test_what_cannot_be_meant_is_refused(engine, fields, name):
    with pytest.raises(RequestError, match=name) as caught:
        params_of(engine, **fields)
    assert caught.value.param.startswith(name)


# ---- echo ----

PROMPT = "Once über: 日本"


@pytest.mark.parametrize("n", [1, 2])
def test_echo_gives_the_prompt_and_then_the_output(engine, n):
    answer = engine.completions.create(prompt=PROMPT, echo=True, n=n, max_tokens=100)
    assert [c.text for c in answer.choices] == [PROMPT + TEXT] * n
    assert answer.choices[0].logprobs is None
    assert core_of(engine.loaded).added[-1][1].prompt_logprobs == -1
    encode = engine.loaded.tokenizer.encode
    assert answer.usage.prompt_tokens == len(encode(PROMPT))
    assert answer.usage.completion_tokens == n * (len(encode(TEXT)) + 1)


def test_echo_streams_the_same_text(engine):
    chunks = engine.completions.create(prompt=PROMPT, echo=True, stream=True, max_tokens=100)
    assert "".join(c.choices[0].text for c in chunks) == PROMPT + TEXT


@pytest.mark.parametrize("prompt", [PROMPT, "a"])
@pytest.mark.parametrize("stream", [False, True])
def test_echo_with_logprobs(engine, prompt, stream):
    answer = engine.completions.create(
        prompt=prompt, echo=True, logprobs=2, max_tokens=100, stream=stream
    )
    chunks = [c.choices[0] for c in answer] if stream else answer.choices
    assert "".join(c.text for c in chunks) == prompt + TEXT
    columns = [c.logprobs for c in chunks if c.logprobs]
    tokens = [t for c in columns for t in c.tokens]
    logprobs = [p for c in columns for p in c.token_logprobs]
    tops = [t for c in columns for t in c.top_logprobs or ()]
    offsets = [o for c in columns for o in c.text_offset]
    encode = engine.loaded.tokenizer.encode
    n, m = len(encode(prompt)), len(encode(TEXT))
    assert len(tokens) == len(logprobs) == len(tops) == len(offsets) == n + m
    assert logprobs == [None, *(-i - 0.25 for i in range(1, n)), *[-0.5] * m]
    assert tops[0] is None
    assert all(len(top) == 2 for top in tops[1:])
    assert offsets[0] == 0
    assert offsets[n] == len(prompt)
    assert offsets == sorted(offsets)
    assert core_of(engine.loaded).added[-1][1].prompt_logprobs == 2


def test_echo_of_token_ids_leaves_special_ones_out(engine):
    tokenizer = engine.loaded.tokenizer
    ids = [tokenizer.backend.token_to_id("<|user|>"), *tokenizer.encode("the cat")]
    answer = engine.completions.create(prompt=ids, echo=True, logprobs=0, max_tokens=100)
    assert answer.choices[0].text == "the cat" + TEXT
    assert answer.choices[0].logprobs.tokens[0] == "<|user|>"
    assert answer.choices[0].logprobs.text_offset[:2] == [0, 0]


def test_stop_strings_are_not_looked_for_in_the_echo(engine):
    answer = engine.completions.create(prompt=PROMPT, echo=True, stop="upon", max_tokens=100)
    assert answer.choices[0].text == PROMPT + "sat "
    answer = engine.completions.create(prompt=PROMPT, echo=True, stop="Once", max_tokens=100)
    assert answer.choices[0].text == PROMPT + TEXT

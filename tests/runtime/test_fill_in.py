"""Completions with a suffix, and those that write nothing."""

from __future__ import annotations

import json

import pytest
from tokenizers import AddedToken

from wherry.runtime import MLCEngine, RequestError
from wherry.runtime.core.host_abi import open_host
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .conftest import core_of
from .fake_core import FakeCore, saying

WAYS = json.loads(open_host().wherry_fill_in_marks())
# Of these the suffix comes first.
SUFFIX_FIRST = ("<[fim-prefix]>", "[PREFIX]")


def tokenizer_with(marks, backend=None) -> Tokenizer:
    backend = backend or small_tokenizers.byte_level()
    backend.add_special_tokens([AddedToken(m, special=True) for m in marks])
    return Tokenizer(backend, {"eos_token": "</s>"})


@pytest.fixture
def engine():
    models = []

    def build(marks=WAYS[0], backend=None):
        tokenizer = tokenizer_with(marks, backend)
        eos = tokenizer.special_id("</s>")
        core = FakeCore(saying(tokenizer.encode("upon"), eos), context=512)
        models.append(LoadedModel("small", core, SideFiles(tokenizer)))
        return MLCEngine.of(models[-1])

    yield build
    for model in models:
        model.close()


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w[0])
def test_each_way(engine, way):
    it = engine(way)
    it.completions.create(prompt="the cat", suffix=" sat")
    ids, params = core_of(it.loaded).added[-1]
    first, second = f"{way[0]}the cat", f"{way[1]} sat"
    expected = second + first if way[0] in SUFFIX_FIRST else first + second
    tokenizer = it.loaded.tokenizer
    assert tokenizer.decode(ids, skip_special_tokens=False) == expected + "".join(way[2:])
    assert {tokenizer.special_id(mark) for mark in way} <= set(params.stop_ids)


def test_a_beginning_of_text_stays_first_and_no_space_is_added(engine):
    it = engine(WAYS[3], small_tokenizers.byte_fallback())
    it.completions.create(prompt="the", suffix="cat")
    ids, _ = core_of(it.loaded).added[-1]
    names = [it.loaded.tokenizer.backend.id_to_token(i) for i in ids]
    assert names[:2] == ["<s>", "▁<PRE>"]
    assert names[names.index("▁<SUF>") + 1 :] == ["cat", "▁<MID>"]


def test_a_completion_with_a_suffix(engine):
    it = engine()
    answer = it.completions.create(prompt="Once", suffix=" a time")
    assert answer.choices[0].text == "upon"
    ids, params = core_of(it.loaded).added[-1]
    text = it.loaded.tokenizer.decode(ids, skip_special_tokens=False)
    assert text == "<|fim_prefix|>Once<|fim_suffix|> a time<|fim_middle|>"
    assert it.loaded.tokenizer.special_id("<|fim_prefix|>") in params.stop_ids
    it.completions.create(prompt="Once", suffix="")
    assert len(core_of(it.loaded).added[-1][0]) == 1


def test_models_that_cannot(engine):
    with pytest.raises(RequestError, match="suffix is not supported") as e:
        engine(()).completions.create(prompt="Once", suffix="x")
    assert e.value.param == "suffix"
    with pytest.raises(RequestError, match="exclude each other"):
        engine().completions.create(prompt="Once", suffix="x", echo=True)
    with pytest.raises(RequestError, match="suffix has"):
        engine().completions.create(prompt="Once", suffix="x" * 100_000)


def test_the_prompt_alone(engine):
    """max_tokens 0 with echo: how likely the prompt is, and nothing more."""
    it = engine()
    answer = it.completions.create(prompt="the cat", echo=True, logprobs=1, max_tokens=0)
    choice = answer.choices[0]
    assert (choice.text, choice.finish_reason) == ("the cat", "length")
    assert choice.logprobs.tokens == ["the", " ", "cat"]
    assert choice.logprobs.token_logprobs == [None, -1.25, -2.25]
    assert answer.usage.completion_tokens == 0
    chunks = list(it.completions.create(prompt="the cat", echo=True, max_tokens=0, stream=True))
    assert "".join(c.choices[0].text for c in chunks) == "the cat"
    with pytest.raises(RequestError, match="max_tokens is 0"):
        it.completions.create(prompt="the cat", max_tokens=0)


def test_logprobs_of_the_prompt_as_vllm_has_them(engine):
    it = engine()
    answer = it.completions.create(prompt="the cat", prompt_logprobs=2, max_tokens=1)
    first, second, third = answer.choices[0].prompt_logprobs
    ids = it.loaded.tokenizer.encode("the cat")
    assert first is None
    assert second[str(ids[1])] == {"logprob": -1.25, "rank": 1, "decoded_token": " "}
    assert len(third) == 2
    assert answer.choices[0].text == "upon"
    assert it.completions.create(prompt="a", prompt_logprobs=False).choices[
        0
    ].model_dump().keys() == {
        "index",
        "text",
        "finish_reason",
        "logprobs",
    }
    with pytest.raises(RequestError, match="not streamed"):
        it.completions.create(prompt="a", prompt_logprobs=0, stream=True)

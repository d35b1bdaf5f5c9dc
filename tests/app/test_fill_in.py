"""Prompts with a gap, of each convention, as Python's server makes them."""

from __future__ import annotations

import json

import pytest

from wherry.runtime.text.fill_in import WAYS, prompt, stop_ids

from ..runtime import small_tokenizers
from ..runtime.test_fill_in import tokenizer_with
from .programs import Program


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield program


@pytest.mark.parametrize("make", [small_tokenizers.byte_level, small_tokenizers.byte_fallback])
@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.before_prefix)
def test_each_convention(cpp, way, make):
    tokenizer = tokenizer_with(way.marks, make())
    (eos,) = tokenizer.eos_ids
    text = tokenizer.encode("cat", add_special_tokens=False)
    for before, after in (("the cat", " sat"), ("", "cat"), ("the", "\n")):
        wanted = prompt(tokenizer, way, tokenizer.encode(before), after)
        for stop in [eos, *stop_ids(tokenizer)]:
            made = cpp.ask(
                tokenizer=tokenizer.backend.to_str(),
                template="",
                eos=[eos],
                output=[*text, stop, *text],
                request={"prompt": before, "suffix": after},
            )
            assert made["prompt"] == wanted
            choice = json.loads(made["answer"][0])["choices"][0]
            assert (choice["text"].strip(), choice["finish_reason"]) == ("cat", "stop")


def test_a_model_without_one(cpp):
    tokenizer = tokenizer_with([])
    made = cpp.ask(
        tokenizer=tokenizer.backend.to_str(),
        template="",
        eos=list(tokenizer.eos_ids),
        output=[],
        request={"prompt": "x", "suffix": "y"},
    )
    assert made["error"]["param"] == "suffix"

"""Prompts with a gap, of each convention, as the engine has them with the library's tokenizer."""

from __future__ import annotations

import json

import pytest

from wherry.runtime import MLCEngine
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles

from ..runtime import small_tokenizers
from ..runtime.conftest import core_of
from ..runtime.fake_core import FakeCore, saying
from ..runtime.test_fill_in import WAYS, tokenizer_with
from .programs import Program


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_scripted_app") as program:
        yield program


@pytest.mark.parametrize("make", [small_tokenizers.byte_level, small_tokenizers.byte_fallback])
@pytest.mark.parametrize("way", WAYS, ids=lambda w: w[0])
def test_each_convention(cpp, way, make):
    tokenizer = tokenizer_with(way, make())
    (eos,) = tokenizer.eos_ids
    text = tokenizer.encode("cat", add_special_tokens=False)
    with MLCEngine.of(
        LoadedModel("small", FakeCore(saying(text, eos), context=512), SideFiles(tokenizer))
    ) as engine:
        for before, after in (("the cat", " sat"), ("", "cat"), ("the", "\n")):
            engine.completions.create(prompt=before, suffix=after)
            prompt, _ = core_of(engine.loaded).added[-1]
            for stop in [eos, *map(tokenizer.special_id, way)]:
                answer = cpp.ask(
                    tokenizer=tokenizer.backend.to_str(),
                    template="",
                    eos=[eos],
                    output=[*text, stop, *text],
                    request={"prompt": before, "suffix": after},
                )
                assert answer["prompt"] == prompt
                choice = json.loads(answer["answer"][0])["choices"][0]
                assert (choice["text"].strip(), choice["finish_reason"]) == ("cat", "stop")


def test_a_model_without_one(cpp):
    tokenizer = tokenizer_with([])
    answer = cpp.ask(
        tokenizer=tokenizer.backend.to_str(),
        template="",
        eos=list(tokenizer.eos_ids),
        output=[],
        request={"prompt": "x", "suffix": "y"},
    )
    assert answer["error"]["param"] == "suffix"

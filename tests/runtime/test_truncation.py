"""Texts that are too long: cut as the tokenizers library and other servers cut them."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from wherry.runtime.errors import RequestError
from wherry.runtime.request.truncation import (
    Truncation,
    cut_pair,
    cut_prompt,
    cut_text,
    first_tokens,
    truncation_of,
)
from wherry.runtime.shapes.requests import parse
from wherry.runtime.shapes.vectors import EmbeddingRequest, RerankRequest
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers

TEMPLATES = {
    "template": processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    ),
    "bert": processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
    "roberta": processors.RobertaProcessing(("[SEP]", 2), ("[CLS]", 1)),
    "none": None,
}


def words(processor=TEMPLATES["template"]):
    vocab = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2} | {f"w{i}": i for i in range(3, 60)}
    made = Backend(models.WordLevel(vocab, "[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if processor is not None:
        made.post_processor = processor
    return made


def text(first, count):
    return " ".join(f"w{first + i}" for i in range(count))


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize(("query", "document"), [(3, 20), (20, 3), (12, 12), (9, 20), (1, 1)])
def test_pairs_are_cut_as_the_tokenizers_library_cuts_them(name, query, document):
    pair = (text(3, query), text(30, document))
    expected = words(TEMPLATES[name])
    for most in (8, 15, 16, 30):
        expected.enable_truncation(most, strategy="longest_first")
        made = expected.encode(*pair)
        found = cut_pair(Tokenizer(words(TEMPLATES[name])), pair, most)
        assert found == (made.ids, made.type_ids)


def test_a_pair_needs_a_token_of_each_text():
    with pytest.raises(RequestError, match="a pair of texts needs 5 or more"):
        cut_pair(Tokenizer(words()), (text(3, 9), text(30, 9)), 4)


def test_a_text_keeps_the_special_tokens_after_it():
    assert cut_text(Tokenizer(words()), text(3, 20), 5) == [1, 3, 4, 5, 2]
    assert cut_text(Tokenizer(words()), text(3, 2), 5) == [1, 3, 4, 2]


def test_first_tokens():
    tokenizer = Tokenizer(words())
    assert first_tokens(tokenizer, text(3, 20), 4) == text(3, 4)
    assert first_tokens(tokenizer, text(3, 3), 4) == text(3, 3)
    assert first_tokens(tokenizer, text(3, 20), None) == text(3, 20)
    bytes_of = Tokenizer(small_tokenizers.byte_level())
    assert first_tokens(bytes_of, "x√y", 2) == "x"  # no character is cut into its bytes


def test_a_prompt_keeps_what_is_around_its_document():
    tokenizer = Tokenizer(words(None))

    def written(document):
        return f"w3 w4 {document} w5"

    assert cut_prompt(tokenizer, written, text(30, 20), 8) == [3, 4, 30, 31, 32, 33, 34, 5]
    assert cut_prompt(tokenizer, written, text(30, 2), 8) == [3, 4, 30, 31, 5]
    assert cut_prompt(tokenizer, written, text(30, 2), 3) is None


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, Truncation(most=50)),
        ({"truncate": True}, Truncation(most=50, cuts=True)),
        ({"truncate_prompt_tokens": -1}, Truncation(most=50, cuts=True)),
        ({"truncate_prompt_tokens": 9}, Truncation(most=9, cuts=True)),
        ({"truncate_prompt_tokens": 99}, Truncation(most=50, cuts=True)),
        ({"max_tokens_per_doc": 7, "max_tokens_per_query": 0}, Truncation(most=50, document=7)),
    ],
)
def test_what_a_request_says(fields, found):
    request = parse(RerankRequest, {"query": "a", "documents": ["b"], **fields})
    assert truncation_of(request, 50) == found


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": 5, "truncate": False}, "truncate_prompt_tokens"),
    ],
)
def test_what_a_request_cannot_say(fields, param):
    with pytest.raises(RequestError) as e:
        truncation_of(parse(EmbeddingRequest, {"input": "a", **fields}), 50)
    assert e.value.param == param

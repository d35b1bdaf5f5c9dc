"""Texts that are too long: cut as the tokenizers library and other servers cut them."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors

from wherry.artifact.head import ClassHead, ScoreHead
from wherry.runtime.errors import RequestError
from wherry.runtime.host.request import HostRequest, checked
from wherry.runtime.host.sinks import BlockingSink
from wherry.runtime.load.model import LoadedModel
from wherry.runtime.load.side_files import SideFiles
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers
from .fake_core import saying
from .vector_core import VectorCore

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
PAIRS = ClassHead(labels=("a",), activation="sigmoid")
PROMPTS = ScoreHead(yes=3, no=4)


def words(processor=TEMPLATES["template"]):
    vocab = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2} | {f"w{i}": i for i in range(3, 60)}
    backend = Backend(models.WordLevel(vocab, "[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    if processor is not None:
        backend.post_processor = processor
    return backend


def text(first, count):
    return " ".join(f"w{first + i}" for i in range(count))


def ids(task, fields, backend, *, head=None, template=None, context=50):
    """The tokens of each job of a request."""
    core = VectorCore(saying([], 3), entries=("forward", "embed"), context=context)
    model = LoadedModel(
        "m", core, SideFiles(Tokenizer(backend), template and ChatTemplate(template), head=head)
    )
    try:
        checked(task, fields)
        sink = BlockingSink()
        running = model.start(HostRequest(task, fields), sink)
        while not running.done:
            running.take(sink.take())
        return [prompt for prompt, _ in core.added]
    finally:
        model.close()


def pair(query, document, backend, **fields):
    fields = {"query": query, "documents": [document], **fields}
    return ids("rerank", fields, backend, head=PAIRS)[0]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize(("query", "document"), [(3, 20), (20, 3), (12, 12), (9, 20), (1, 1)])
def test_pairs_are_cut_as_the_tokenizers_library_cuts_them(name, query, document):
    texts = (text(3, query), text(30, document))
    expected = words(TEMPLATES[name])
    for most in (8, 15, 16, 30):
        expected.enable_truncation(most, strategy="longest_first")
        encoded = pair(*texts, words(TEMPLATES[name]), truncate_prompt_tokens=most)
        assert encoded == expected.encode(*texts).ids


def test_a_pair_needs_a_token_of_each_text():
    with pytest.raises(RequestError, match="a pair of texts needs 5 or more"):
        pair(text(3, 9), text(30, 9), words(), truncate_prompt_tokens=4)


def test_a_text_keeps_the_special_tokens_after_it():
    fields = {"input": [text(3, 20), text(3, 2)], "truncate_prompt_tokens": 5}
    assert ids("embed", fields, words()) == [[1, 3, 4, 5, 2], [1, 3, 4, 2]]


def test_first_tokens_of_each_text():
    cut = {"max_tokens_per_query": 2, "max_tokens_per_doc": 4}
    assert pair(text(3, 20), text(30, 20), words(None), **cut) == [3, 4, 30, 31, 32, 33]
    assert pair(text(3, 1), text(30, 3), words(None), **cut) == [3, 30, 31, 32]
    zero = dict.fromkeys(cut, 0)  # all of them
    assert len(pair(text(3, 20), text(30, 20), words(None), **zero)) == 40
    bytes_of = small_tokenizers.byte_level()
    (x,) = bytes_of.encode("x").ids
    # no character is cut into its bytes
    fields = {"query": "x√y", "documents": ["x"], "max_tokens_per_query": 2}
    core = ids("rerank", fields, bytes_of, template="{{ messages[0].content }}", head=PROMPTS)
    assert core == [[x], [x]]


def test_a_prompt_keeps_what_is_around_its_document():
    template = "w3 w4 {{ messages[-1].content }} w5"

    def prompt(document, most):
        fields = {"query": "a", "documents": [document], "truncate_prompt_tokens": most}
        return ids("rerank", fields, words(None), template=template, head=PROMPTS)[0]

    assert prompt(text(30, 20), 8) == [3, 4, 30, 31, 32, 33, 34, 5]
    assert prompt(text(30, 2), 8) == [3, 4, 30, 31, 5]
    with pytest.raises(RequestError, match="Shorten the query") as e:
        prompt(text(30, 2), 3)
    assert e.value.param == "query"


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"truncate": True}, 50),
        ({"truncate_prompt_tokens": -1}, 50),
        ({"truncate_prompt_tokens": 9}, 9),
        ({"truncate_prompt_tokens": 99}, 50),
    ],
)
def test_what_a_request_says(fields, tokens):
    long = text(3, 50) + " " + text(3, 50)
    assert len(ids("embed", {"input": long, **fields}, words(None))[0]) == tokens
    with pytest.raises(RequestError, match="reads at most 50 tokens; input has"):
        ids("embed", {"input": long}, words(None))


@pytest.mark.parametrize(
    "fields",
    [
        {"truncate_prompt_tokens": 0},
        {"truncate_prompt_tokens": -2},
        {"truncate_prompt_tokens": 5, "truncate": False},
    ],
)
def test_what_a_request_cannot_say(fields):
    with pytest.raises(RequestError) as e:
        ids("embed", {"input": "w3", **fields}, words())
    assert e.value.param == "truncate_prompt_tokens"

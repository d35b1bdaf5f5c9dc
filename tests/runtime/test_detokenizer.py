"""The pieces of a text, joined, are the text; no piece cuts a character."""

from __future__ import annotations

import time

import pytest

from wherry.runtime.text.detokenizer import detokenizer
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers as small
from . import text_streams as streams
from .text_streams import BYTES, KINDS


@pytest.fixture(params=KINDS)
def tokenizer(request):
    return Tokenizer(KINDS[request.param]())


@pytest.fixture(params=BYTES)
def byte_tokenizer(request):
    return Tokenizer(KINDS[request.param]())


def pieces(tokenizer, ids, prompt=()):
    made = detokenizer(tokenizer, prompt)
    return [*(made.push(i) for i in ids), made.flush()]


def test_random_text_in_pieces_is_the_text(byte_tokenizer):
    for ids in streams.texts(byte_tokenizer, 300):
        made = pieces(byte_tokenizer, ids)
        assert "".join(made) == byte_tokenizer.decode(ids)
        assert made[-1] == ""  # nothing is left over from whole characters


def test_random_ids_in_pieces_are_decoded(tokenizer):
    """Not for byte fallback with damaged runs, see test_damaged_byte_run."""
    for ids in streams.random_ids(tokenizer, 300):
        assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


def test_no_piece_has_a_part_of_a_character(byte_tokenizer):
    ids = byte_tokenizer.encode(streams.WHOLE_CHARACTERS, add_special_tokens=False)
    made = pieces(byte_tokenizer, ids)
    assert "\ufffd" not in "".join(made)
    assert len([p for p in made if p]) >= 7  # character by character, not all at the end


def test_completion_continues_the_prompt(tokenizer):
    for prompt, output in streams.continued(tokenizer, 300):
        if tokenizer.decode(prompt).endswith("\ufffd"):
            continue  # its text ends within a character: nothing can continue it
        whole = tokenizer.decode(prompt) + "".join(pieces(tokenizer, output, prompt))
        assert whole == tokenizer.decode(prompt + output)


def test_completion_keeps_its_leading_space_and_an_answer_does_not():
    tokenizer = Tokenizer(small.byte_fallback())
    prompt, output = tokenizer.encode("the cat"), [tokenizer.backend.token_to_id("▁sat")]
    assert "".join(pieces(tokenizer, output, prompt)) == " sat"
    assert "".join(pieces(tokenizer, output)) == "sat"


def test_damaged_byte_run():
    """The library would take the good character back; what is damaged is replaced byte by byte."""
    tokenizer = Tokenizer(small.byte_fallback())
    ids = streams.damaged(tokenizer)
    assert pieces(tokenizer, ids) == ["", "é", "", "", "\ufffd\ufffda", ""]
    assert pieces(tokenizer, ids[2:3])[-1] == "\ufffd" == tokenizer.decode(ids[2:3])


def test_specials_and_unknown_ids_are_no_text(tokenizer):
    ids = tokenizer.encode("cat", add_special_tokens=False)
    eos = tokenizer.backend.token_to_id("</s>")
    made = pieces(tokenizer, [eos, *ids, eos, tokenizer.vocab_size + 7])
    assert "".join(made) == "cat"


def test_work_per_token_does_not_grow(tokenizer):
    token = tokenizer.encode("cat", add_special_tokens=False)[-1]
    made = detokenizer(tokenizer)

    def seconds(n: int) -> float:  # CPU time of this thread, independent of other work
        start = time.thread_time()
        for _ in range(n):
            made.push(token)
        return time.thread_time() - start

    first = min(seconds(200) for _ in range(5))
    for _ in range(5000):
        made.push(token)
    assert min(seconds(200) for _ in range(5)) < 5 * first + 0.01

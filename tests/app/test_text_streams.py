"""The detokenizer's pieces, joined, are the library's text; what stop strings let out of a text."""

from __future__ import annotations

import random
import time

import pytest

from wherry.runtime.text.tokenizer import Tokenizer

from ..runtime import text_streams as streams
from . import tokenizer_kinds
from .tokenize import CoreTokenizer

KINDS = {
    **streams.KINDS,
    **{
        name: tokenizer_kinds.KINDS[name]
        # not "flags": the library writes special tokens that its normalizer changes
        for name in ("llama3", "gemma", "t5", "albert", "end_of_word", "continuing")
    },
}


class Both:
    """A tokenizer of the library, and its like in C++."""

    def __init__(self, kind: str) -> None:
        self.library = Tokenizer(KINDS[kind]())
        self.core = CoreTokenizer(self.library.backend.to_str())

    def pieces(self, ids, prompt=(), visible=()):
        """A piece for each id, and one for the end."""
        return self.core.detokenize(ids, prompt, visible)


@pytest.fixture(params=KINDS)
def both(request):
    opened = Both(request.param)
    with opened.core:
        yield opened


@pytest.fixture(params=streams.BYTES)
def of_bytes(request):
    opened = Both(request.param)
    with opened.core:
        yield opened


def test_random_text_in_pieces_is_the_text(of_bytes):
    for ids in streams.texts(of_bytes.library, 100):
        pieces = of_bytes.pieces(ids)
        assert "".join(pieces) == of_bytes.library.decode(ids)
        assert pieces[-1] == ""  # nothing is left over from whole characters


def test_random_ids_in_pieces_are_decoded(both):
    """Not for byte fallback with damaged runs, see test_damaged_byte_run."""
    for ids in streams.random_ids(both.library, 100):
        assert "".join(both.pieces(ids)) == both.library.decode(ids)


def test_no_piece_has_a_part_of_a_character(of_bytes):
    ids = of_bytes.library.encode(streams.COMPLETE_CHARACTERS, add_special_tokens=False)
    pieces = of_bytes.pieces(ids)
    assert "\ufffd" not in "".join(pieces)
    assert len([p for p in pieces if p]) >= 7  # character by character, not all at the end


def test_completion_continues_the_prompt(both):
    for prompt, output in streams.continued(both.library, 100):
        before = both.library.decode(prompt)
        if before.endswith("\ufffd"):
            continue  # its text ends within a character: nothing can continue it
        text = before + "".join(both.pieces(output, prompt))
        assert text == both.library.decode(prompt + output)


def test_completion_keeps_its_leading_space_and_an_answer_does_not():
    both = Both("byte_fallback")
    prompt, output = both.library.encode("the cat"), [both.library.backend.token_to_id("▁sat")]
    with both.core:
        assert "".join(both.pieces(output, prompt)) == " sat"
        assert "".join(both.pieces(output)) == "sat"


def test_damaged_byte_run():
    """The library would take the good character back; what is damaged is replaced byte by byte."""
    both = Both("byte_fallback")
    ids = streams.damaged(both.library)
    with both.core:
        assert both.pieces(ids) == ["", "é", "", "", "\ufffd\ufffda", ""]
        assert both.pieces(ids[2:3])[-1] == "\ufffd" == both.library.decode(ids[2:3])


def test_specials_and_unknown_ids_are_no_text(both):
    ids = both.library.encode("cat", add_special_tokens=False)
    special = sorted(both.library.special_ids)[-1]
    unknown = both.library.vocab_size + 7
    assert "".join(both.pieces([special, *ids, special, unknown])) == both.library.decode(ids)
    name = both.library.backend.id_to_token(special)
    assert name in "".join(both.pieces([*ids, special], visible=[special]))


def test_work_per_token_does_not_grow(both):
    token = both.library.encode("cat", add_special_tokens=False)[-1]

    def seconds(n: int) -> float:
        start = time.perf_counter()
        both.pieces([token] * n)
        return time.perf_counter() - start

    few = min(seconds(1000) for _ in range(3))
    assert min(seconds(10_000) for _ in range(3)) < 40 * few + 0.05


@pytest.fixture(scope="module")
def core():
    with CoreTokenizer() as program:
        yield program


def reference(stops, text):
    """Character by character: the first end of a stop string, the longest that ends there."""
    for end in range(len(text) + 1):
        begins = [end - len(s) for s in stops if s and text[:end].endswith(s)]
        if begins:
            return text[: min(begins)], text[min(begins) : end]
    return text, None


@pytest.mark.parametrize(("stops", "text", "expected"), streams.STOPS)
def test_cases(core, stops, text, expected):
    for chunks in ([text], list(text)):
        assert "".join(core.stop(stops, chunks)[0]) == expected


def test_random_texts_and_cuts(core):
    rng = random.Random(7)
    cases = list(streams.random_stops(1000))
    for _ in range(300):
        stops = ["".join(rng.choices("日本🎉🎈é", k=rng.randint(1, 3))) for _ in range(3)]
        text = "".join(rng.choices("日本🎉🎈é", k=rng.randrange(14)))
        cases.append((stops, text, streams.chunks_of(text, rng)))
    for stops, text, chunks in cases:
        given, stop = core.stop(stops, chunks)
        assert ("".join(given), stop) == reference(stops, text), (stops, chunks)


def test_only_a_possible_beginning_is_kept_back(core):
    given, stop = core.stop(["STOP"], ["abcST", "x", "S", "TOP and more", "more"])
    assert given == ["abc", "STx", "", "", "", ""]
    assert stop == "STOP"


# The worst for a scan: every string is near, none comes.
@pytest.mark.parametrize(
    ("stops", "text"),
    [
        (["a" * 1000 + chr(0x100 + i) for i in range(1024)], "a" * 20_000),
        (["ab" * 499 + chr(0x100 + i) for i in range(1024)], "ab" * 10_000),
        (["a" * i + "b" for i in range(1024)], "a" * 20_000),
        (["".join(random.Random(i).choices("ab", k=1000)) for i in range(1024)], "abba" * 5000),
    ],
)
def test_time_does_not_grow_with_the_number_of_strings(core, stops, text):
    chunks = [text[at : at + 4] for at in range(0, len(text), 4)]

    def seconds(stops, chunks):
        start = time.perf_counter()
        core.stop(stops, chunks)
        return time.perf_counter() - start

    ready = seconds(stops, [])  # for the strings alone
    assert seconds(stops, chunks) < ready + 20 * seconds([stops[-1]], chunks) + 0.5

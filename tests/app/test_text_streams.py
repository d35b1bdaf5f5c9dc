"""The C++ detokenizer and stop strings answer as Python's, piece by piece."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from wherry.runtime.text.detokenizer import detokenizer
from wherry.runtime.text.stop_strings import StopAutomaton, StopStrings
from wherry.runtime.text.tokenizer import Tokenizer

from ..runtime import text_streams as streams
from . import tokenizer_kinds
from .tokenize import CoreTokenizer

TABLE = json.loads((Path(__file__).parents[1] / "web" / "text_cases.json").read_text())
KINDS = {
    **streams.KINDS,
    **{
        name: tokenizer_kinds.KINDS[name]
        for name in ("llama3", "gemma", "t5", "albert", "end_of_word", "continuing", "flags")
    },
}


@pytest.mark.parametrize("kind", TABLE["tokenizers"])
def test_table(kind):
    table = TABLE["tokenizers"][kind]
    with CoreTokenizer(json.dumps(table["tokenizer"])) as core:
        for case, pieces in zip(table["encode"], table["pieces"], strict=True):
            assert core.encode(case["text"]) == case["ids"]
            assert [list(core.piece(i)) for i in case["ids"]] == pieces
        for case in table["detokenize"]:
            assert core.detokenize(case["ids"], case["prompt"]) == case["pieces"], case


def test_table_of_stop_strings():
    with CoreTokenizer() as core:
        for case in TABLE["stops"]:
            given = core.stop(case["stops"], case["chunks"])
            assert given == (case["given"], case["found"]), case


@pytest.mark.parametrize("kind", KINDS)
def test_pieces(kind):
    backend = KINDS[kind]()
    tokenizer, rng = Tokenizer(backend), random.Random(6)
    specials = sorted(tokenizer.special_ids)
    with CoreTokenizer(backend.to_str()) as core:

        def check(ids, prompt=(), visible=()):
            made = detokenizer(tokenizer, prompt, visible)
            expected = [*(made.push(i) for i in ids), made.flush()]
            assert core.detokenize(ids, prompt, visible) == expected, (ids, prompt, visible)

        for ids in [*streams.texts(tokenizer, 100), *streams.random_ids(tokenizer, 100)]:
            check(ids)
        for prompt, output in streams.continued(tokenizer, 100):
            check(output, prompt)
        for _ in range(100):  # anything, damaged characters and unknown ids too
            ids = [rng.randrange(tokenizer.vocab_size + 5) for _ in range(rng.randrange(1, 30))]
            cut = rng.randrange(len(ids))
            check(ids[cut:], ids[:cut], rng.sample(specials, min(2, len(specials))))
        check(tokenizer.encode(streams.WHOLE_CHARACTERS, add_special_tokens=False))
        if kind.startswith("byte_fallback"):
            check(streams.damaged(tokenizer))


def test_stop_strings():
    rng = random.Random(7)
    cases = [(stops, chunks) for stops, _, chunks in streams.random_stops(500)]
    cases += [(stops, streams.chunks_of(text, rng)) for stops, text, _ in streams.STOPS]
    for _ in range(300):
        stops = ["".join(rng.choices("日本🎉🎈é", k=rng.randint(1, 3))) for _ in range(3)]
        text = "".join(rng.choices("日本🎉🎈é", k=rng.randrange(14)))
        cases.append((stops, streams.chunks_of(text, rng)))
    with CoreTokenizer() as core:
        for stops, chunks in cases:
            made = StopStrings(StopAutomaton(stops))
            given = [*(made.push(chunk) for chunk in chunks), made.flush()]
            assert core.stop(stops, chunks) == (given, made.found), (stops, chunks)

"""The pieces of a text, joined, are the text; no piece cuts a character."""

from __future__ import annotations

import random
import time

import pytest

from wherry.runtime.text.detokenizer import detokenizer
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers as small

KINDS = {
    "byte_level": small.byte_level,
    "byte_fallback": small.byte_fallback,
    "byte_fallback_unstripped": lambda: small.byte_fallback(strip=False),
    "metaspace": small.metaspace,
    "word_piece": small.word_piece,
}
BYTES = [k for k in KINDS if k.startswith("byte")]


@pytest.fixture(params=KINDS)
def tokenizer(request):
    return Tokenizer(KINDS[request.param]())


@pytest.fixture(params=BYTES)
def byte_tokenizer(request):
    return Tokenizer(KINDS[request.param]())


def random_text(rng: random.Random, length: int = 40) -> str:
    ranges = [(0x20, 0x7E), (0x20, 0x20), (0xA0, 0x24F), (0x3040, 0x30FF), (0x1F300, 0x1F6FF)]
    ranges += [(0x300, 0x36F), (0x10000, 0x10FFFF), (0x2581, 0x2581), (0xFFFD, 0xFFFD)]
    words = ["the", " cat", "日本", "Once upon a time", "\n", "  "]
    return "".join(
        rng.choice(words) if rng.random() < 0.3 else chr(rng.randint(*rng.choice(ranges)))
        for _ in range(rng.randrange(length))
    )


def pieces(tokenizer, ids, prompt=()):
    made = detokenizer(tokenizer, prompt)
    return [*(made.push(i) for i in ids), made.flush()]


def test_random_text_in_pieces_is_the_text(byte_tokenizer):
    rng = random.Random(1)
    for _ in range(300):
        text = random_text(rng)
        ids = byte_tokenizer.encode(text, add_special_tokens=False)
        made = pieces(byte_tokenizer, ids)
        assert "".join(made) == byte_tokenizer.decode(ids)
        assert made[-1] == ""  # nothing is left over from whole characters


def test_random_ids_in_pieces_are_decoded(tokenizer):
    """Not for byte fallback with damaged runs, see test_damaged_byte_run."""
    rng = random.Random(2)
    texts = [i for i in range(tokenizer.vocab_size) if b"\x80" > tokenizer.piece(i)[:1]]
    rule = tokenizer.token_bytes
    every = rule is not None and not rule.each_byte
    for _ in range(300):
        ids = rng.choices(range(tokenizer.vocab_size) if every else texts, k=rng.randrange(60))
        assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(ids)


def test_no_piece_has_a_part_of_a_character(byte_tokenizer):
    text = "é日本🎉🇯🇵e\u0301"
    made = pieces(byte_tokenizer, byte_tokenizer.encode(text, add_special_tokens=False))
    assert "\ufffd" not in "".join(made)
    assert len([p for p in made if p]) >= 7  # character by character, not all at the end


def test_completion_continues_the_prompt(tokenizer):
    rng = random.Random(3)
    texts = [i for i in range(tokenizer.vocab_size) if b"\x80" > tokenizer.piece(i)[:1]]
    for _ in range(300):
        ids = rng.choices(texts, k=rng.randrange(2, 80))
        cut = rng.randrange(1, len(ids))
        prompt, output = ids[:cut], ids[cut:]
        if tokenizer.decode(prompt).endswith("\ufffd"):
            continue  # its text ends within a character: nothing can continue it
        whole = tokenizer.decode(prompt) + "".join(pieces(tokenizer, output, prompt))
        assert whole == tokenizer.decode(ids)


def test_completion_keeps_its_leading_space_and_an_answer_does_not():
    tokenizer = Tokenizer(small.byte_fallback())
    prompt, output = tokenizer.encode("the cat"), [tokenizer.backend.token_to_id("▁sat")]
    assert "".join(pieces(tokenizer, output, prompt)) == " sat"
    assert "".join(pieces(tokenizer, output)) == "sat"


def test_damaged_byte_run():
    """The library would take the good character back; what is damaged is replaced byte by byte."""
    tokenizer = Tokenizer(small.byte_fallback())
    run = [tokenizer.backend.token_to_id(f"<0x{b:02X}>") for b in "é".encode() + b"\xe4\xb8"]
    made = pieces(tokenizer, [*run, tokenizer.backend.token_to_id("a")])
    assert made == ["", "é", "", "", "\ufffd\ufffda", ""]
    assert pieces(tokenizer, run[2:3])[-1] == "\ufffd" == tokenizer.decode(run[2:3])


def test_specials_and_unknown_ids_are_no_text(tokenizer):
    ids = tokenizer.encode("cat", add_special_tokens=False)
    eos = tokenizer.backend.token_to_id("</s>")
    made = pieces(tokenizer, [eos, *ids, eos, tokenizer.vocab_size + 7])
    assert "".join(made) == "cat"


def test_work_per_token_does_not_grow(tokenizer):
    token = tokenizer.encode("cat", add_special_tokens=False)[-1]
    made = detokenizer(tokenizer)

    def seconds(n: int) -> float:  # of this thread's own work, whoever else is at work
        start = time.thread_time()
        for _ in range(n):
            made.push(token)
        return time.thread_time() - start

    first = min(seconds(200) for _ in range(5))
    for _ in range(5000):
        made.push(token)
    assert min(seconds(200) for _ in range(5)) < 5 * first + 0.01

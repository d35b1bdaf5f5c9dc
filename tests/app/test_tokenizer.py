"""The C++ tokenizer answers as `tokenizers` does, byte for byte."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from ..runtime import small_tokenizers as small
from . import mixed_texts
from . import tokenizer_kinds as kinds
from .tokenize import CoreTokenizer, TokenizerError

KINDS = {
    **kinds.KINDS,
    **{f"small_{f.__name__}": f for f in (small.byte_level, small.byte_fallback)},
    **{f"small_{f.__name__}": f for f in (small.metaspace, small.word_piece)},
}
TEXTS = 40  # of each of some 70 kinds
# Kinds whose ids show all that is known of a character: its bytes, or where it is cut.
ALL_CHARACTERS = (
    "normal_nfc normal_nfd normal_nfkc normal_nfkd_stripped normal_lower normal_bert normal_nmt "
    "normal_nmt_nfkc_cf cut_whitespace cut_bert cut_single_digits bpe_gpt2 bpe_o200k bpe_deepseek "
    "bpe_tiktoken"
).split()


def check(own: Tokenizer, core: CoreTokenizer, texts: int, seed: int) -> None:
    rng = random.Random(seed)
    added = [token.content for token in own.get_added_tokens_decoder().values()]
    known = sorted(own.get_vocab().values())
    for _ in range(texts):
        text, specials = mixed_texts.random_text(rng, added), rng.random() < 0.5
        ids = encoded(own, text, specials)
        assert core.encode(text, add_special_tokens=specials) == ids, ascii(text)
        for some in (ids, rng.choices(known, k=rng.randrange(1, 20))):
            skip = rng.random() < 0.5
            expected = own.decode(some, skip_special_tokens=skip)
            assert core.decode(some, skip_special_tokens=skip) == expected, some


def encoded(own: Tokenizer, text: str, specials: bool = False) -> list[int]:
    return own.encode_batch_fast([text], add_special_tokens=specials)[0].ids


@pytest.mark.parametrize("kind", KINDS)
def test_random_texts(kind):
    own = KINDS[kind]()
    with CoreTokenizer(own.to_str()) as core:
        check(own, core, TEXTS, seed=1)
        assert core.vocab_size() == own.get_vocab_size()
        for name, token in list(own.get_vocab().items())[:50]:
            assert core.find(name) == own.token_to_id(name)
            assert core.name(token) == own.id_to_token(token)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_texts(kind):
    own = KINDS[kind]()
    with CoreTokenizer(own.to_str()) as core:
        check(own, core, 400, seed=int(time.time()) // 86400)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ALL_CHARACTERS)
def test_all_characters(kind):
    own = KINDS[kind]()
    with CoreTokenizer(own.to_str()) as core:
        for text in mixed_texts.characters():
            assert core.encode(text, add_special_tokens=False) == encoded(own, text), ascii(text)


@pytest.mark.parametrize("kind", ["normal_nfkc", "normal_bert", "cut_bert", "bpe_o200k"])
def test_some_of_all_characters(kind):
    own = KINDS[kind]()
    with CoreTokenizer(own.to_str()) as core:
        for text in mixed_texts.characters(step=17, offset=5):
            assert core.encode(text, add_special_tokens=False) == encoded(own, text), ascii(text)


def test_the_demos_tokenizer():
    path = Path(__file__).parents[2] / "src" / "wherry" / "demo" / "tokenizer.json"
    own = Tokenizer.from_file(str(path))
    with CoreTokenizer(path.read_bytes()) as core:
        check(own, core, 200, seed=2)


@pytest.mark.parametrize("kind", ["gpt2", "llama2", "t5", "word_piece_cased"])
def test_ill_formed_utf8_is_replaced_as_python_does(kind):
    own, rng = KINDS[kind](), random.Random(3)
    parts = [b"\xc3", b"\xe2\x82", b"\xf0\x9f\x8e", b"\xed\xa0\x80", b"\xff", b"\x80", b"\xc0\xaf"]
    parts += [b"the ", "é".encode(), "🎉".encode(), b"\xf4\x90\x80\x80"]
    with CoreTokenizer(own.to_str()) as core:
        for _ in range(100):
            data = b"".join(rng.choices(parts, k=rng.randrange(1, 8)))
            assert core.encode(data, add_special_tokens=False) == encoded(
                own, data.decode(errors="replace")
            ), data


def test_text_without_end_of_a_word_takes_no_longer_than_the_library():
    """A million times the same letter: a square would take hours."""
    own = KINDS["bpe_llama3"]()
    with CoreTokenizer(own.to_str()) as core:
        seconds, n = core.seconds("a" * 1_000_000)
        assert n == len(encoded(own, "a" * 1_000_000))
    assert seconds < 5


def broken(document: dict, path: str, value: object) -> str:
    """The file with another value at a path."""
    changed = json.loads(json.dumps(document))
    at = changed
    *way, last = path.split(".")
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at[step]
    at[int(last) if isinstance(at, list) else last] = value
    return json.dumps(changed)


@pytest.mark.parametrize(
    ("kind", "path", "value", "error"),
    [
        ("llama3", "model.type", "Magic", "tokenizer.json.model.type"),
        ("llama3", "model.vocab", None, "tokenizer.json.model.vocab is null"),
        ("llama3", "model.merges.3", ["a"], "tokenizer.json.model.merges[3]"),
        ("llama3", "added_tokens.1.special", 1, "tokenizer.json.added_tokens[1].special is 1"),
        ("llama3", "pre_tokenizer.pretokenizers.0.pattern.Regex", "[a", "[ without ]"),
        ("llama3", "pre_tokenizer.pretokenizers.1.type", "Other", "pretokenizers[1].type"),
        ("llama3", "post_processor.processors.1.single.0.SpecialToken.id", "<x>", "lack it"),
        ("llama2", "decoder.decoders.0.pattern", {}, '"String" or "Regex"'),
        ("t5", "normalizer.normalizers.0.precompiled_charsmap", "!", "base64"),
        ("t5", "model.vocab.2", ["a"], "tokenizer.json.model.vocab[2]"),
        ("flags", "version", "2.0", "tokenizer.json.version"),
    ],
)
def test_errors_name_path_and_value(kind, path, value, error):
    document = json.loads(KINDS[kind]().to_str())
    with CoreTokenizer() as core, pytest.raises(TokenizerError) as raised:
        core.open(broken(document, path, value))
    assert error in str(raised.value)


@pytest.mark.nightly
def test_it_is_at_least_as_fast_as_the_library():
    """Of long texts, in processor time; the margin is for a machine that does other work."""
    text = " ".join(kinds.CORPUS) * 60
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    for kind in ("bpe_o200k", "llama2", "unigram", "word_piece_uncased"):
        own = KINDS[kind]()
        with CoreTokenizer(own.to_str()) as core:
            seconds, n = min(core.seconds(text) for _ in range(3))
        begin = time.process_time()
        assert n == len(encoded(own, text))
        assert seconds < 1.2 * (time.process_time() - begin), kind

"""The core's masks, asked from Python."""

from __future__ import annotations

import gc
import json
import random
import threading

import pytest

from wherry.errors import UsageError, WherryError
from wherry.runtime.core.library import open_core
from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.audit import prepared
from wherry.runtime.grammar.native import Vocabulary
from wherry.runtime.grammar.vocabulary import SPECIAL, grammar_tokens
from wherry.runtime.text.tokenizer import Tokenizer

from .. import small_tokenizers
from .schemas import TREE
from .walking import END, TOKENS, bytes_vocabulary, outputs, vocabulary, walk_of

SCHEMA = {
    "type": "object",
    "properties": {"name": {"const": "foobar"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}


def compiled(kind: str, text: str):
    return bytes_vocabulary().compile(kind, text)


def test_stop_tokens_only_where_the_text_is_complete():
    walk = walk_of(compiled("regex", "a{2,3}"))
    assert walk.allowed() == [ord("a")]
    assert not walk.accept(ord("a"))
    assert walk.allowed() == [ord("a")]
    assert not walk.accept(ord("a"))
    assert walk.allowed() == [ord("a"), END]
    assert walk.accept(ord("a"))  # nothing may follow: it ends without a stop token


def test_several_stop_tokens_and_text_tokens_among_them():
    stops = (END, ord("b"), ord("x"))
    walk = walk_of(compiled("regex", "[ab]{2,}"), stops)
    assert walk.allowed() == [ord("a")]  # b would end it
    walk.accept(ord("a"))
    walk.accept(ord("a"))
    assert walk.allowed() == [ord("a"), ord("b"), ord("x"), END]
    assert walk.accept(ord("x"))


def test_without_stop_tokens():
    walk = walk_of(compiled("regex", "a*"), ())
    assert walk.allowed() == [ord("a")]
    walk = walk_of(compiled("regex", ""), ())
    with pytest.raises(UsageError, match="no stop token"):
        walk.allowed()


def test_a_stop_token_too_early_is_an_error():
    walk = walk_of(compiled("regex", "aa"))
    with pytest.raises(UsageError, match="stop token 256 in an incomplete text"):
        walk.accept(END)


def test_a_token_that_was_not_allowed_is_an_error():
    walk = walk_of(compiled("regex", "aa"))
    with pytest.raises(UsageError, match="structured output"):
        walk.accept(ord("b"))


def test_special_tokens_match_no_text():
    walk = walk_of(compiled("regex", "(?s:.)*"), ())
    allowed = walk.allowed()
    assert END not in allowed and 0xFF not in allowed  # 0xff is in no UTF-8
    assert {t for t in range(128)} <= set(allowed)
    named = walk_of(compiled("lark", 'start: "a" <|end|> "b"'), ())
    named.accept(ord("a"))
    assert named.allowed() == [END]


def test_a_model_may_have_more_logits_than_tokens_or_fewer():
    grammar = compiled("regex", "[Az]")
    assert walk_of(grammar, size=10_000).allowed() == [ord("A"), ord("z")]
    assert walk_of(grammar, size=96).allowed() == [ord("A")]
    for n in (31, 32, 33, 64):
        narrow = vocabulary([bytes([48 + b]) for b in range(n)]).compile("regex", "(?s:.)")
        assert walk_of(narrow, (), n).allowed() == list(range(n))
        assert walk_of(narrow, (), n + 64).allowed() == list(range(n))


@pytest.mark.parametrize("seed", range(6))
def test_forced_tokens_are_those_of_the_mask(seed):
    """With jump-forward and without, a request goes through the same masks."""
    grammar = compiled("json_schema", prepared(SCHEMA, None))
    rng = random.Random(seed)
    jumping, stepping = walk_of(grammar), walk_of(grammar)
    jumped = 0
    for _ in range(200):
        forced = jumping.forced(rng.randrange(1, 9))
        for token in forced:
            assert stepping.allowed() == [token]
            done = stepping.accept(token)
            assert jumping.accept(token) == done
            jumped += 1
        if forced and done:
            break
        allowed = stepping.allowed()
        assert jumping.allowed() == allowed
        token = rng.choice(allowed)
        done = stepping.accept(token)
        assert jumping.accept(token) == done
        if done:
            break
    else:
        pytest.fail("did not end")
    assert jumped > 5


def test_forced_changes_nothing():
    walk = walk_of(compiled("regex", "abcd[ef]"))
    for _ in range(3):
        assert bytes(walk.forced(10)) == b"abcd"
        assert bytes(walk.forced(2)) == b"ab"
    assert walk.allowed() == [ord("a")]
    for byte in b"abcd":
        assert not walk.accept(byte)
    assert walk.forced(10) == []
    assert walk.accept(ord("f"))


def test_forced_does_not_look_where_much_is_allowed():
    """There the device would wait for a mask that forces nothing."""
    x = 3_000
    tokens = [chr(0x4E00 + i).encode() for i in range(x)] + [b"x"]
    walk = walk_of(vocabulary(tokens).compile("regex", "[一-鿿]xx"), (), len(tokens))
    assert len(walk.allowed()) == x
    walk.accept(7)
    assert walk.forced(8) == []
    assert walk.allowed() == [x]
    assert walk.forced(8) == [x] * 2  # the mask is there now
    walk.accept(x)
    assert walk.forced(8) == [x]


def test_forced_to_the_end():
    walk = walk_of(compiled("regex", "abc"))
    assert bytes(walk.forced(10)) == b"abc"
    assert [walk.accept(b) for b in b"abc"] == [False, False, True]
    assert walk.forced(10) == []


def test_masks_outlive_grammar_and_vocabulary():
    own = vocabulary()
    grammar = own.compile("regex", "ab")
    walk = walk_of(grammar)
    del own, grammar
    gc.collect()
    walk.accept(ord("a"))
    assert walk.allowed() == [ord("b")]


def test_requests_do_not_meet():
    grammar = compiled("json_schema", prepared(TREE))
    alone = outputs(grammar, 8, seed=3)
    outputs_of: dict[int, list[bytes]] = {}
    threads = [
        threading.Thread(target=lambda i=i: outputs_of.update({i: outputs(grammar, 8, seed=3)}))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outputs_of[i] for i in range(4)] == [alone] * 4


@pytest.mark.parametrize(
    "kind, text, message",
    [
        ("regex", "(a", "regex"),
        ("regex", "(?=a)b", "look-around"),
        ("lark", "start: missing", "missing"),
        ("json_schema", "{", "EOF|JSON"),
        ("xml", "", "accepted are json_schema, regex, lark"),
    ],
)
def test_errors(kind, text, message):
    with pytest.raises(UsageError, match=message):
        compiled(kind, text)


def test_not_the_library(tmp_path):
    with pytest.raises(WherryError, match="cannot open"):
        Vocabulary(open_core(), tmp_path / "none.so", TOKENS)
    with pytest.raises(WherryError, match="has no function llg_get_version"):
        Vocabulary(open_core(), _tvm_ffi(), TOKENS)


def _tvm_ffi():
    import importlib.util
    from pathlib import Path

    folder = Path(importlib.util.find_spec("tvm_ffi").origin).parent / "lib"
    return next(p for p in folder.iterdir() if p.stem == "libtvm_ffi")


@pytest.mark.parametrize(
    "backend", [small_tokenizers.byte_level(), small_tokenizers.byte_fallback()]
)
def test_tokens_of_tokenizers(backend):
    """A text's own tokens lead through a grammar of that text; what they make is valid JSON."""
    tokenizer = Tokenizer(backend, {"eos_token": "</s>"})
    tokens = grammar_tokens(tokenizer, tokenizer.vocab_size + 7)
    assert tokens[tokenizer.vocab_size :] == [b""] * 7
    for special in tokenizer.special_ids:
        assert tokens[special].startswith(SPECIAL)
    own = vocabulary(tokens)
    text = "Once upon a time über 日本"
    ids = tokenizer.encode(text, add_special_tokens=False)
    joined = b"".join(tokens[i] for i in ids)
    assert joined.decode().strip() == text
    walk = walk_of(own.compile("regex", " ?" + text), tokenizer.eos_ids, len(tokens))
    for token in ids[:-1]:
        assert token in walk.allowed()
        assert not walk.accept(token)
    assert ids[-1] in walk.allowed() and walk.accept(ids[-1])

    grammar = own.compile("json_schema", prepared({"type": "array", "maxItems": 3}))
    rng, valid = random.Random(0), 0
    for _ in range(20):
        walk, written = walk_of(grammar, tokenizer.eos_ids, len(tokens)), []
        for _ in range(300):
            allowed = walk.allowed()
            closing = [t for t in allowed if tokens[t] in (b"]", b'"', b"}")]
            written.append(rng.choice(closing or allowed))
            if walk.accept(written[-1]):
                json.loads(b"".join(tokens[t] for t in written))
                valid += 1
                break
    assert valid >= 10


def test_tokenizers_without_bytes_are_refused():
    tokenizer = Tokenizer(small_tokenizers.word_piece())
    with pytest.raises(RequestError, match="tokens are bytes") as error:
        grammar_tokens(tokenizer, 10)
    assert error.value.code == "unsupported_tokenizer"

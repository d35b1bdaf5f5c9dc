"""Tokenizers of GGUF: what is split, joined, added and refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer

from wherry.compiler.checkpoint.gguf.folder import _tokenizer_config, unfold
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.tokenizer import build
from wherry.compiler.checkpoint.gguf.vocabulary import vocabulary_of
from wherry.errors import ModelError
from wherry.runtime.text.tokenizer import Tokenizer as WherryTokenizer

from . import writing


def built(tmp_path, vocabulary) -> Tokenizer:
    file = writing.write(tmp_path / "v.gguf", "llama", {}, {}, vocabulary=vocabulary)
    return build(vocabulary_of(read_header(file)))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"token_type": np.array([1, np.nan, 3])}, "token_type: expected an integer"),
        ({"token_type": np.array([1, 99, 3])}, "token_type: found 99, expected numbers up to 6"),
        ({"token_type": np.array([1, -1, 3])}, "token_type: found -1"),
        ({"scores": np.array([1.0, np.nan, 3.0])}, "scores: found NaN"),
        ({"eos_token_id": 3}, "eos_token_id: found 3, expected one of 3 tokens"),
        ({"eos_token_id": "</s>"}, "eos_token_id: found '</s>'"),
        ({"eot_token_id": -5}, "eot_token_id: found -5"),
        (
            {"eos_token_id": 2**32 - 1, "padding_token_id": 77, "token_type": np.array([0, 1, 6])},
            None,
        ),
    ],
)
def test_fields_of_a_vocabulary(fields, said):
    fields = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "c"]} | fields
    metadata = {f"tokenizer.ggml.{name}": value for name, value in fields.items()}
    header = SimpleNamespace(metadata=metadata, path="x.gguf")
    if said is None:
        assert vocabulary_of(header).ends == ()
        return
    with pytest.raises(ModelError, match=said):
        vocabulary_of(header)


def test_byte_level_bpe(tmp_path):
    tokenizer = built(tmp_path, writing.letters)
    assert tokenizer.encode("hello w\u00e9 12").tokens == [
        *("hell", "o", "\u0120w", "\u00c3", "\u00a9", "\u0120", "1", "2")
    ]
    assert tokenizer.decode(tokenizer.encode("hello w\u00e9 12").ids) == "hello w\u00e9 12"
    assert tokenizer.encode("he<|im_end|>he").tokens == ["he", "<|im_end|>", "he"]


@pytest.mark.parametrize("kind", ["normal", "user"])
def test_the_end_of_a_turn_is_a_control_token_whatever_the_file_says(tmp_path, kind):
    tokenizer = built(tmp_path, partial(writing.letters, end=kind))
    assert tokenizer.encode("he<|im_end|>he").tokens == ["he", "<|im_end|>", "he"]
    assert tokenizer.decode(tokenizer.encode("he<|im_end|>").ids) == "he"


def test_an_empty_template_is_none(tmp_path):
    file = writing.write(tmp_path / "m.gguf", "llama", {}, {}, vocabulary=writing.letters)
    header = read_header(file)
    for text, written in (("", False), ("x", True)):
        given = replace(header, metadata={**header.metadata, "tokenizer.chat_template": text})
        assert ("chat_template" in _tokenizer_config(given, vocabulary_of(header))) == written


def test_an_unknown_rule_of_splitting_is_an_error(tmp_path):
    with pytest.raises(ModelError, match=r"rule 'my-own'.*Known are: .*gpt-2.*llama-bpe.*tekken"):
        built(tmp_path, partial(writing.letters, pre="my-own"))


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("gpt-2", "it's 1234!", ["it", "'s", " 1234", "!"]),
        ("smollm", "it's 1234!", ["it", "'s", " ", "1", "2", "3", "4", "!"]),
        ("llama-bpe", "IT'S 1234!", ["IT", "'S", " ", "123", "4", "!"]),
        ("qwen2", "a\n\n b1", ["a", "\n\n", " b", "1"]),
        ("tekken", "getHTTP a", ["get", "HTTP", " a"]),
        ("gpt-4o", "HELLOworld's", ["HELLOworld's"]),
        ("superbpe", "1234567", ["1", "234", "567"]),
        ("afmoe", "1234567 a", ["1", "234", "567", " a"]),
        ("kimi-k2", "ab\u4e2d\u6587", ["ab", "\u4e2d\u6587"]),
    ],
)
def test_splitting(tmp_path, pre, text, pieces):
    tokenizer = built(tmp_path, partial(writing.letters, pre=pre))
    cut = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    assert [text[start:stop] for _, (start, stop) in cut] == pieces


def sentence_piece(writer, *, prefix=True):
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    kinds = [2, 3, 3] + [6] * 256
    words = {"\u2581": -1, "a": -2, "b": -3, "ab": -9, "\u2581a": -4, "\u2581ab": -5, "  ": 0}
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*tokens, *words])
    writer.add_token_scores([0.0] * len(tokens) + [float(s) for s in words.values()])
    writer.add_token_types(kinds + [1] * (len(words) - 1) + [4])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(prefix)


def test_sentence_piece(tmp_path):
    tokenizer = built(tmp_path, sentence_piece)
    assert tokenizer.encode("ab\u00e9").tokens == ["<s>", "\u2581ab", "<0xC3>", "<0xA9>"]
    assert tokenizer.decode(tokenizer.encode("ab ab").ids) == "ab ab"
    tokenizer = built(tmp_path, partial(sentence_piece, prefix=False))
    assert tokenizer.encode("ab  a").tokens == ["<s>", "ab", "  ", "a"]


def test_the_folder_of_a_file(tmp_path):
    """Special tokens, the template and the tokens that end a turn."""
    folder = unfold(writing.llama(tmp_path / "m.gguf"), tmp_path / "cache")
    tokenizer = WherryTokenizer.from_folder(folder)
    assert tokenizer.eos_ids == (261,)
    assert tokenizer.special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["chat_template"] == writing.TEMPLATE
    before = (folder / "tokenizer.json").stat().st_mtime_ns
    assert unfold(tmp_path / "m.gguf", tmp_path / "cache") == folder
    assert (folder / "tokenizer.json").stat().st_mtime_ns == before

"""The texts of cards and of calibration, and how they are cut."""

from __future__ import annotations

import re

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from wherry.compiler.quality.texts import MOST_BYTES, Text, given, shipped, windows
from wherry.errors import ModelError, UsageError

WORDS = {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "c": 4, "?": 5}


def folder_with(tmp_path, *, bos: bool):
    tokenizer = tokenizers.Tokenizer(models.WordLevel(WORDS, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if bos:
        pair = [("<s>", 0), ("</s>", 1)]
        tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=pair)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_documents_are_cut_into_windows(tmp_path):
    text = Text(("a b c a b", "c c"))
    assert windows(text, folder_with(tmp_path, bos=False), 3) == [[2, 3, 4], [2, 3], [4, 4]]


def test_each_window_begins_as_the_tokenizer_says_and_none_ends_so(tmp_path):
    text = Text(("a b c a b", "c c"))
    assert windows(text, folder_with(tmp_path, bos=True), 4) == [[0, 2, 3, 4], [0, 2, 3], [0, 4, 4]]


def test_a_window_of_one_token_predicts_nothing(tmp_path):
    assert windows(Text(("a b c",)), folder_with(tmp_path, bos=False), 2) == [[2, 3]]


def test_a_folder_without_a_tokenizer(tmp_path):
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        windows(Text(("a",)), tmp_path, 4)


@pytest.mark.parametrize("purpose", ["evaluation", "calibration"])
def test_a_text_ships(purpose):
    text = shipped(purpose)
    assert len(text.documents) >= 3 and 500 < len(" ".join(text.documents).split()) < 4000
    assert len(text.sha256) == 64


def test_the_evaluation_is_not_what_was_calibrated_on():
    def lines(purpose):
        joined = "\n".join(shipped(purpose).documents)
        return {s.strip() for s in re.split(r"[.!?\n]", joined) if len(s.split()) > 3}

    assert not lines("evaluation") & lines("calibration")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b" \n", "is empty"), (b"\xff\xfe", "is not UTF-8 text"), (None, "cannot be read")],
)
def test_a_file_that_is_no_text(tmp_path, content, said):
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        given(path)


def test_a_file_that_is_too_large(tmp_path):
    path = tmp_path / "text"
    with path.open("wb") as f:
        f.truncate(MOST_BYTES + 1)
    with pytest.raises(UsageError, match="a text has at most"):
        given(path)

"""Special ids from the files of a model folder."""

from __future__ import annotations

import json

import pytest

from wherry.errors import ModelError
from wherry.runtime.text.tokenizer import Tokenizer

from . import small_tokenizers as small


@pytest.fixture
def folder(tmp_path):
    small.byte_fallback().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def write(folder, name, value):
    (folder / name).write_text(json.dumps(value))


def test_eos_ids_of_all_files(folder):
    write(folder, "generation_config.json", {"eos_token_id": [7, 2]})
    write(folder, "config.json", {"eos_token_id": 9})
    write(folder, "tokenizer_config.json", {"eos_token": {"content": "<|user|>"}})
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.eos_ids == (7, 2, 9, tokenizer.backend.token_to_id("<|user|>"))
    assert tokenizer.special_tokens == {"eos_token": "<|user|>"}


def test_eos_id_of_a_nested_configuration(folder):
    write(folder, "config.json", {"text_config": {"eos_token_id": 5}})
    assert Tokenizer.from_folder(folder).eos_ids == (5,)


def test_no_eos(folder):
    write(folder, "generation_config.json", {"eos_token_id": None})
    assert Tokenizer.from_folder(folder).eos_ids == ()


@pytest.mark.parametrize("value", ["x", True, [1, "2"], -1])
def test_eos_of_a_wrong_type(folder, value):
    write(folder, "generation_config.json", {"eos_token_id": value})
    with pytest.raises(ModelError, match="eos_token_id"):
        Tokenizer.from_folder(folder)


def test_special_tokens_map_is_read_and_overruled(folder):
    write(folder, "special_tokens_map.json", {"bos_token": "<s>", "eos_token": "</s>"})
    write(folder, "tokenizer_config.json", {"eos_token": "<|user|>"})
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.special_tokens == {"bos_token": "<s>", "eos_token": "<|user|>"}


def test_bos_only_where_configured(folder):
    tokenizer = Tokenizer.from_folder(folder)
    bos = tokenizer.backend.token_to_id("<s>")
    assert tokenizer.encode("cat")[0] == bos
    assert bos not in tokenizer.encode("cat", add_special_tokens=False)
    assert tokenizer.decode(tokenizer.encode("cat")) == "cat"


def test_truncation_and_padding_of_the_file_are_off(folder):
    backend = small.byte_level()
    backend.enable_truncation(2)
    backend.enable_padding(length=8)
    backend.save(str(folder / "tokenizer.json"))
    assert len(Tokenizer.from_folder(folder).encode("x y z")) == 5


def test_missing_and_damaged_files(tmp_path):
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot be read"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{")
    small.byte_level().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="not JSON"):
        Tokenizer.from_folder(tmp_path)


def test_pieces_are_bytes():
    tokenizer = Tokenizer(small.byte_level())
    ids = tokenizer.encode("é 日本", add_special_tokens=False)
    assert b"".join(tokenizer.piece(i) for i in ids) == "é 日本".encode()
    assert tokenizer.piece(tokenizer.backend.token_to_id("</s>")) == b"</s>"
    assert tokenizer.piece(10**6) == b""

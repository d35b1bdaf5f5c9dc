"""A compiled folder's small files: what is damaged or makes no sense in them is said."""

from __future__ import annotations

import json

import pytest

from wherry.errors import ModelError
from wherry.runtime.load.side_files import SideFiles

from ..support import artifacts
from . import small_tokenizers as small


@pytest.fixture
def folder(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    small.byte_level().save(str(model / "tokenizer.json"))
    artifacts.write(model, target={"name": "cpu", "kind": "llvm"})
    return model


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("generation_config.json", '{"temperature": "hot"}', "temperature: found 'hot'"),
        ("generation_config.json", '{"temperature": NaN}', "temperature: found nan"),
        ("generation_config.json", '{"top_p": 0}', "top_p: found 0, expected a number above 0"),
        ("generation_config.json", '{"top_k": 1e400}', "top_k: found inf"),
        ("generation_config.json", '{"top_k": 99999999999}', "top_k: found 99999999999"),
        ("generation_config.json", '{"min_p": 1}', "min_p: found 1"),
        ("generation_config.json", '{"repetition_penalty": [1]}', "repetition_penalty: found"),
        ("generation_config.json", '{"do_sample": 0}', "do_sample: found 0"),
        ("generation_config.json", '{"eos_token_id": 1e9}', "eos_token_id is 1000000000.0"),
        ("generation_config.json", '{"eos_token_id": 4294967297}', "eos_token_id is 4294967297"),
        ("generation_config.json", "[" * 50_000, "nest more than 100"),
        ("config.json", '{"text_config": 7, "eos_token_id": "x"}', "eos_token_id is 'x'"),
        ("chat_template.jinja", b"\xff\xfe", "not a text that can be read"),
        ("tokenizer_config.json", b'{"a": "\xff"}', "not JSON"),
        ("tokenizer_config.json", '{"chat_template": [{"name": [], "template": 3}]}', "is a int"),
        ("tokenizer.json", b"\xff", "cannot be read"),
        ("tokenizer.json", "[" * 100_000, "cannot be read"),
    ],
)
def test_damaged_side_files(folder, name, content, said):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelError) as e:
        SideFiles.read(folder)
    assert name in str(e.value) and said in str(e.value)


def test_generation_config_says_all_that_is_wrong(folder):
    wrong = {"temperature": -1, "top_p": 2, "top_k": 1.5, "min_p": None}
    (folder / "generation_config.json").write_text(json.dumps(wrong))
    with pytest.raises(ModelError) as e:
        SideFiles.read(folder)
    assert str(e.value).count("  - ") == 3


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("pre_tokenizer", {"type": "FixedLength", "length": 0}),  # panics when it encodes
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": ""}),  # when it is read
        ("decoder", {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": 3}),
    ],
)
def test_a_tokenizer_that_panics(folder, part, value, capfd):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {part: value}))
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        SideFiles.read(folder)


def test_an_id_that_would_fill_the_memory(folder):
    """Writing such a tokenizer took 8 GB and a minute."""
    path = folder / "tokenizer.json"
    raw = json.loads(path.read_text())
    raw["model"]["vocab"]["far"] = 2**31
    path.write_text(json.dumps(raw))
    with pytest.raises(ModelError, match="token of id 2147483648; ids go to 16777215"):
        SideFiles.read(folder)


def test_the_rule_of_a_decoder_takes_no_copy_of_the_vocabulary():
    backend = small.byte_level()
    expected = json.loads(backend.to_str())["decoder"]
    assert json.loads(backend.decoder.__getstate__()) == expected

"""The small files of a model's folder are parsed once per compilation."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.draft_head import joined
from wherry.compiler.forecast import described_folder, forecast
from wherry.compiler.load import describe
from wherry.compiler.model_folder import model_folder
from wherry.errors import ModelError

from ..cli.test_commands import write_tokenizer
from ..support import tiny_models
from ..support.eagle3 import HEADED, WithHead
from .gguf import writing

OPTIONS = {"target": "cpu", "limits": Limits(context=64)}


@pytest.fixture
def parsed(monkeypatch):
    """Counts the parsed configurations of models and of tokenizers, and records of weights."""
    counts: Counter[str] = Counter()
    loads = json.loads

    def counted(text, **options):
        value = loads(text, **options)
        if isinstance(value, dict):
            counts["config"] += "num_hidden_layers" in value
            counts["tokenizer_config"] += "eos_token" in value
            counts["weights"] += "job" in value and "tokenizer" in value
        return value

    monkeypatch.setattr(json, "loads", counted)
    return counts


def save(folder):
    tiny_models.save(folder, "llama", tie_word_embeddings=True)
    write_tokenizer(folder)
    config = {"eos_token": "<e>", "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.cpu
def test_a_compilation_parses_each_file_once(tmp_path, parsed):
    folder = save(tmp_path / "model")
    parsed.clear()
    first = ensure_artifact(str(folder), quant="q4f16_1", **OPTIONS)
    assert parsed == {"config": 1, "tokenizer_config": 1, "weights": 1}
    parsed.clear()
    assert ensure_artifact(str(folder), quant="q4f16_1", **OPTIONS) == first
    assert parsed == {"config": 1, "tokenizer_config": 1, "weights": 0}


@pytest.mark.cpu
def test_so_does_one_of_a_gguf_file(tmp_path, parsed):
    file = writing.of_folder(save(tmp_path / "model"), tmp_path / "model.gguf", "llama")
    parsed.clear()
    ensure_artifact(str(file), **OPTIONS)
    assert parsed == {"config": 1, "tokenizer_config": 1, "weights": 1}
    parsed.clear()
    with described_folder(str(file)) as folder:
        forecast("model", folder, **OPTIONS)
    assert parsed == {"config": 1, "tokenizer_config": 1, "weights": 0}


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_head_that_drafts_has_its_own_file(tmp_path, parsed):
    both = WithHead(HEADED["llama with a head"])
    both.save(tmp_path / "model")
    parsed.clear()
    ensure_artifact(str(tmp_path / "model"), draft_head=str(both.head), **OPTIONS)
    assert parsed == {"config": 2, "tokenizer_config": 0, "weights": 1}


def test_a_gguf_file_with_a_head_keeps_its_encoding(tmp_path):
    both = WithHead(HEADED["llama with a head"])
    both.save(tmp_path / "model")
    file = writing.of_folder(tmp_path / "model", tmp_path / "model.gguf", "llama")
    folder = model_folder(str(file))
    with_head = joined(folder, str(both.head))
    assert with_head.label == folder.label == "F32"
    described = describe(with_head)
    assert described.default_scheme == describe(folder).default_scheme
    assert described.folder.config["wherry_draft_head"]["vocab"] == len(both.tokens)
    again = read_folder(with_head.path)
    assert (again.label, again.config) == (with_head.label, with_head.config)


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    for name in ("wherry-gguf.json", "wherry-mistral.json", "wherry-draft-head.json"):
        (tmp_path / name).write_text("{}")
        with pytest.raises(ModelError, match=f"{name} is damaged .*Remove {tmp_path}"):
            read_folder(tmp_path)
        (tmp_path / name).unlink()

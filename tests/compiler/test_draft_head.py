"""Joining a model with an EAGLE-3 head: what does not fit is an error that says why."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from wherry.base import settings
from wherry.compiler.api import ModelParts, convert_model, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.formats import open_checkpoint
from wherry.compiler.checkpoint.joined import with_others
from wherry.compiler.checkpoint.tensors import Checkpoint
from wherry.compiler.draft_head import joined
from wherry.compiler.forecast import forecast
from wherry.errors import ModelError, UsageError
from wherry.hub.file_names import DRAFT_HEAD

from ..support.eagle3 import HEADED, WithHead

KIND = HEADED["llama with a head"]
SPOILT = (torch.zeros(()).long(), torch.zeros(100), torch.zeros(0).long())  # as d2t


@pytest.fixture
def case(tmp_path):
    """(the folder of a model, the folder of its head)."""
    model = WithHead(KIND)
    model.save(tmp_path / "model")
    return tmp_path / "model", model.head


def change(head, **fields):
    path = head / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"vocab_size": 256}, "vocab_size is 256, the model has 320"),
        ({"target_hidden_size": 32}, "hidden states of 32 elements, the model has 64"),
        ({"draft_vocab_size": 320}, "draft_vocab_size is 320, and d2t has 100"),
        ({"num_hidden_layers": 2}, "num_hidden_layers: found 2, supported is 1"),
        ({"norm_before_fc": True}, "norm_before_fc: found True, supported is False"),
        ({"bias_of_q": 1}, "bias_of_q: 1, an unknown field"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 7]}}, "layers 1, 2, 8 of 4"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0]}}, "1 found, expected are 3"),
    ],
)
def test_heads_that_do_not_fit(case, fields, error):
    model, head = case
    change(head, **fields)
    with pytest.raises((ModelError, UsageError), match=error):
        convert_model(str(model), parts=ModelParts(drafts=str(head)))


def test_a_folder_that_is_no_head(case):
    model, _ = case
    with pytest.raises(ModelError, match=r"is not an EAGLE-3 head.*type --draft"):
        convert_model(str(model), parts=ModelParts(drafts=str(model)))


def test_a_smaller_vocabulary_without_a_map(case):
    model, head = case
    stored = WithHead(KIND).stored
    save_file({n: t for n, t in stored.items() if n not in SPARE}, head / "model.safetensors")
    with pytest.raises(UsageError, match="draft_vocab_size is 100, and there is no d2t"):
        convert_model(str(model), parts=ModelParts(drafts=str(head)))


@pytest.mark.parametrize("changed", SPOILT)
def test_a_map_that_is_none(case, changed):
    model, head = case
    save_file(WithHead(KIND).stored | {"d2t": changed}, head / "model.safetensors")
    with pytest.raises(ModelError, match=r"d2t is .*an integer of 32 or 64"):
        convert_model(str(model), parts=ModelParts(drafts=str(head)))


def test_tokens_that_the_model_has_not(case):
    model, head = case
    stored = WithHead(KIND).stored
    save_file(stored | {"d2t": stored["d2t"] + 400}, head / "model.safetensors")
    with pytest.raises(ModelError, match=r"d2t maps .* the model has 320 tokens"):
        convert_model(str(model), parts=ModelParts(drafts=str(head)))


def test_one_way_to_draft(case):
    model, head = case
    with pytest.raises(UsageError, match="leave out one of them"):
        ensure_artifact(str(model), mtp=True, draft_head=str(head))


def test_the_joined_folder_follows_its_sources(case):
    model, head = case
    first = joined(read_folder(model), str(head)).path
    written_at = (first / DRAFT_HEAD).stat().st_mtime_ns
    assert joined(read_folder(model), str(head)).path == first
    assert (first / DRAFT_HEAD).stat().st_mtime_ns == written_at
    stored = WithHead(KIND).stored
    save_file(stored | {"norm.weight": torch.ones(64)}, head / "model.safetensors")
    assert joined(read_folder(model), str(head)).path == first
    assert (first / DRAFT_HEAD).stat().st_mtime_ns > written_at
    assert not list(first.glob("model*.safetensors"))  # weights stay where they are


def test_a_forecast_counts_the_head(case):
    model, head = case
    with_head = forecast(str(model), read_folder(model), draft_head=str(head))
    assert with_head.parameters - forecast(str(model), read_folder(model)).parameters == sum(
        tensor.numel() for name, tensor in WithHead(KIND).stored.items() if name not in SPARE
    ) + len(WithHead(KIND).stored["t2d"])
    assert with_head.capabilities == ("mtp",)
    for path in model.glob("*.safetensors"):  # of a model that is not here, nothing is kept
        path.unlink()
    before = sorted((settings.cache_dir() / "weights").iterdir())
    again = forecast(str(model), read_folder(model), draft_head=str(head), quant="auto:4.5")
    assert again.parameters == with_head.parameters
    assert sorted((settings.cache_dir() / "weights").iterdir()) == before


SPARE = ("d2t", "t2d")


class Quantized(Checkpoint):
    """A checkpoint that knows its own tensors alone, as that of a GGUF file."""

    def precision_note(self, scheme, kept=()):
        return ", ".join(f"{name} {self.tensors[name].dtype}" for name in kept)

    def loses(self, name, scheme):
        return self.tensors[name].dtype == "F32"


def test_a_quantized_model_notes_its_own_tensors(case):
    model, head = case
    own = open_checkpoint(read_folder(model))
    main = Quantized(own.folder, own.tensors, own.files, own.fingerprint)
    both = with_others(main, {"draft_head.": open_checkpoint(read_folder(head))})
    names = ["model.norm.weight", "draft_head.norm.weight"]
    assert both.precision_note("q4f16_1", names) == "model.norm.weight F32"
    assert [both.loses(name, "q4f16_1") for name in names] == [True, False]

"""Folders of sentence-transformers: what is read, what is kept, what is refused."""

from __future__ import annotations

import json

import pytest

from wherry.artifact.head import HEAD, EmbeddingHead, ScoreHead, read_head
from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import convert_model, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.forecast import forecast
from wherry.compiler.load import describe
from wherry.errors import ModelError
from wherry.hub.sentence_transformers import head_of

from ..support.tiny_embedder import NO, PROMPT, YES, make

EMBEDS = ("Pooling", "Normalize")


def edit(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_an_embedding_model(tmp_path):
    model = make(tmp_path / "model", EMBEDS)
    (model.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 100}')
    head = head_of(read_folder(model.folder).sentence)
    prompts = {"query": PROMPT, "document": ""}
    assert head == EmbeddingHead(normalize=True, max_tokens=100, prompts=prompts)
    assert describe(read_folder(model.folder)).entries == ("embed",)
    out = convert_model(str(model.folder), tmp_path / "out", quant="q0f32")
    assert read_head(out) == head
    assert describe(read_folder(out)).entries == (
        "embed",
    )  # and its modules.json is not there any more
    assert not (out / "modules.json").exists()


def test_another_prompt_makes_the_weights_folder_anew(tmp_path):
    model = make(tmp_path / "model", EMBEDS)
    out = convert_model(str(model.folder), tmp_path / "out", quant="q0f32")
    edit(model.folder / "config_sentence_transformers.json", prompts={"query": "w5 "})
    convert_model(str(model.folder), out, quant="q0f32")
    assert read_head(out).prompts == {"query": "w5 "}
    (out / HEAD).write_text("{}")
    convert_model(str(model.folder), out, quant="q0f32")
    assert read_head(out).prompts == {"query": "w5 "}


def test_without_normalisation(tmp_path):
    assert head_of(read_folder(make(tmp_path, ("Pooling",)).folder).sentence).normalize is False


def test_a_reranker(tmp_path):
    model = make(tmp_path, ("LogitScore",))
    assert head_of(read_folder(model.folder).sentence) == ScoreHead(yes=YES, no=NO)
    assert describe(read_folder(model.folder)).entries == ("forward",)


def test_a_plain_model_has_both_entries(tmp_path):
    described = describe(read_folder(make(tmp_path).folder))
    assert described.head is None
    assert described.entries == ("forward", "embed")


def test_a_model_that_was_saved_without_its_head(tmp_path):
    """AutoModel.save_pretrained: "Qwen3Model" in the configuration, names without "model."."""
    model = make(tmp_path / "model")
    model.model.base_model.save_pretrained(tmp_path / "bare")
    assert json.loads((tmp_path / "bare" / "config.json").read_text())["architectures"] == [
        "Qwen3Model"
    ]
    assert describe(read_folder(tmp_path / "bare")).entries == ("embed",)
    convert_model(str(tmp_path / "bare"), tmp_path / "out", quant="q0f32")


def test_an_embedding_model_that_kept_its_head(tmp_path):
    model = make(tmp_path / "model", EMBEDS)
    model.model.save_pretrained(model.folder)  # with lm_head and "model."
    convert_model(str(model.folder), tmp_path / "out", quant="q0f32")


def test_reading_stays_strict(tmp_path):
    model = make(tmp_path / "model", EMBEDS)
    (model.folder / "modules.json").unlink()
    with pytest.raises(ModelError, match=r"missing: lm_head\.weight"):
        convert_model(str(model.folder), tmp_path / "out", quant="q0f32")


@pytest.mark.parametrize(
    ("file", "values", "said"),
    [
        (
            "1_Pooling/config.json",
            {"pooling_mode_lasttoken": False},
            "found none, supported are cls",
        ),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "found 'median', supported are cls"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "found 'lasttoken' and"),
        ("1_Pooling/config.json", {"pooling_mode": [["cls"]]}, "found"),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt of Pooling"),
        ("config_sentence_transformers.json", {"prompts": {"query": 7}}, "prompts of config_sent"),
        ("config_sentence_transformers.json", {"default_prompt_name": "x"}, "'x', of no prompt"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("sentence_bert_config.json", {"max_seq_length": -1}, "max_seq_length"),
    ],
)
def test_what_cannot_be(tmp_path, file, values, said):
    model = make(tmp_path, EMBEDS)
    path = model.folder / file
    if not path.exists():
        path.write_text("{}")
    edit(path, **values)
    with pytest.raises(ModelError, match=said):
        head_of(read_folder(model.folder).sentence)


def test_a_decoder_has_no_head_of_classes(tmp_path):
    """Qwen3ForSequenceClassification, as sentence-transformers saves a cross-encoder of it."""
    model = make(tmp_path, ("LogitScore",))
    (model.folder / "modules.json").write_text('[{"type": "a.Transformer", "path": ""}]')
    (model.folder / "config_sentence_transformers.json").write_text(
        '{"model_type": "CrossEncoder"}'
    )
    with pytest.raises(ModelError, match="has a head of classes; supported are those of encoders"):
        describe(read_folder(model.folder))


@pytest.mark.parametrize("mode", ["mean", "cls"])
def test_a_decoder_has_its_last_token_alone(tmp_path, mode):
    model = make(tmp_path, EMBEDS)
    newer = {"pooling_mode": mode, "pooling_mode_lasttoken": False}
    (model.folder / "1_Pooling" / "config.json").write_text(json.dumps(newer))
    assert head_of(read_folder(model.folder).sentence).pooling == mode
    with pytest.raises(ModelError, match=f"a decoder with the pooling {mode}"):
        describe(read_folder(model.folder))


@pytest.mark.parametrize(
    "normalizer",
    [
        {"type": "BertNormalizer", "lowercase": True},
        {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
    ],
)
def test_lower_case_that_the_tokenizer_has(tmp_path, normalizer):
    """BGE's English models: do_lower_case, with BERT's uncased tokenizer."""
    model = make(tmp_path, EMBEDS)
    (model.folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    edit(model.folder / "tokenizer.json", normalizer=normalizer)
    assert isinstance(head_of(read_folder(model.folder).sentence), EmbeddingHead)


def test_the_longest_text_of_newer_folders(tmp_path):
    model = make(tmp_path, EMBEDS)
    config = model.folder / "tokenizer_config.json"
    for length, longest in ((77, 77), (int(1e30), None), ("x", None)):
        config.write_text(json.dumps({"model_max_length": length}))
        assert head_of(read_folder(model.folder).sentence).max_tokens == longest


def test_newer_pooling_files(tmp_path):
    model = make(tmp_path, EMBEDS)
    newer = {"embedding_dimension": 64, "pooling_mode": "lasttoken", "include_prompt": True}
    (model.folder / "1_Pooling" / "config.json").write_text(json.dumps(newer))
    assert head_of(read_folder(model.folder).sentence) is not None


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ('[{"type": "a.Transformer"}, {"type": "a.Pooling"}, {"type": "a.CNN"}]', "CNN"),
        ('[{"type": "a.Transformer"}, {"type": "a.Dense"}]', "Dense"),
        ("[]", r"\(none\)"),
        ("{", "cannot be read"),
        ('{"a": 1}', "no list of objects"),
        ('[{"type": "Transformer"}, {"type": "Pooling", "path": "../1_Pooling"}]', "no folder"),
    ],
)
def test_modules_that_are_not_known(tmp_path, modules, said):
    model = make(tmp_path, EMBEDS)
    (model.folder / "modules.json").write_text(modules)
    with pytest.raises(ModelError, match=said):
        head_of(read_folder(model.folder).sentence)


@pytest.mark.parametrize("text", ["{", "{}", '{"kind": "embedding", "pooling": "median"}', "[]"])
def test_a_damaged_record(tmp_path, text):
    (tmp_path / HEAD).write_text(text)
    with pytest.raises(ModelError, match=HEAD):
        read_head(tmp_path)


@pytest.mark.cpu
@pytest.mark.parametrize("modules", [(), EMBEDS])
def test_a_forecast_knows_what_is_compiled(tmp_path, modules):
    """An embedding model is planned without the head that it does not have."""
    model = make(tmp_path / "model", modules)
    options = {"target": "cpu", "quant": "q0f32", "kv_dtype": "float32"}
    manifest = read_manifest(ensure_artifact(str(model.folder), out=tmp_path / "out", **options))
    predicted = forecast(str(model.folder), read_folder(model.folder), **options)
    assert predicted.memory == manifest.memory
    assert manifest.capabilities == (("embedding",) if modules else ("completion", "embedding"))

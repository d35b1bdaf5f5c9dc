"""What an encoder's folder says of its output: pooling, linears, classes."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from wherry.artifact.head import ClassHead, DenseLayer, EmbeddingHead, read_head
from wherry.compiler.api import Limits, convert_model
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.choices import ArtifactSpec
from wherry.compiler.encoders import class_head
from wherry.compiler.load import describe
from wherry.errors import ModelError, UsageError

from ..models.encoders import CASES, save
from ..support.tiny_models import Runner, compiled


def modules(folder, *names):
    """Write modules.json with these modules after Transformer."""
    listed = [{"idx": 0, "name": "0", "path": "", "type": "a.Transformer"}]
    for i, name in enumerate(names, 1):
        listed.append({"idx": i, "name": str(i), "path": f"{i}_{name}", "type": f"a.{name}"})
        (folder / f"{i}_{name}").mkdir(exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(listed))


def dense(folder, inputs, outputs, activation="torch.nn.modules.activation.Tanh", seed=1):
    """Write a module Dense with random weights; return its linear."""
    torch.manual_seed(seed)
    linear = torch.nn.Linear(inputs, outputs)
    config = {"in_features": inputs, "out_features": outputs, "bias": True}
    (folder / "config.json").write_text(json.dumps(config | {"activation_function": activation}))
    state = {f"linear.{name}": p.detach().contiguous() for name, p in linear.named_parameters()}
    save_file(state, folder / "model.safetensors")
    return linear


@pytest.mark.cpu
def test_several_poolings_and_linears(tmp_path):
    folder = tmp_path / "model"
    model = save(folder, CASES["bert"])
    modules(folder, "Pooling", "Dense", "Dense", "Normalize")
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    first = dense(folder / "2_Dense", 128, 24)
    second = dense(folder / "3_Dense", 24, 40, "torch.nn.modules.linear.Identity", seed=2)
    head = describe(read_folder(folder)).head
    assert head.pooling == ("cls", "mean") and head.normalize
    assert head.dense[1] == DenseLayer(inputs=24, outputs=40, activation="identity")
    out = compiled(folder)
    assert read_head(out) == head
    tokens = np.random.default_rng(0).integers(2, 320, 33).tolist()
    with torch.no_grad():
        rows = model(torch.tensor([tokens]))[0][0]
        expected = second(torch.tanh(first(torch.cat([rows[0], rows.mean(0)]))))
    got = Runner(out).step({0: tokens}, "embed")[0][-1]
    assert np.abs(got - expected.numpy()).max() < 1e-5


def test_linears_that_do_not_fit(tmp_path):
    save(tmp_path, CASES["bert"])
    modules(tmp_path, "Pooling", "Dense")
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    dense(tmp_path / "2_Dense", 60, 24)
    with pytest.raises(ModelError, match="Dense 0 has 60 inputs, what precedes it has 64"):
        describe(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"in_features": -1}, "in_features, out_features"),
        ({"activation_function": "torch.nn.modules.activation.Mish"}, "found 'Mish'"),
        ({"bias": 3}, "bias of Dense"),
    ],
)
def test_linears_that_cannot_be(tmp_path, values, said):
    save(tmp_path, CASES["bert"])
    modules(tmp_path, "Pooling", "Dense")
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    dense(tmp_path / "2_Dense", 64, 24)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(ModelError, match=said):
        describe(read_folder(tmp_path))


def test_without_modules_the_mean_is_taken_as_it_is(tmp_path):
    save(tmp_path / "model", CASES["bert"])
    described = describe(read_folder(tmp_path / "model"))
    assert described.head == EmbeddingHead(pooling="mean", normalize=False)
    assert described.entries == ("embed",)
    out = convert_model(str(tmp_path / "model"), tmp_path / "out", quant="q0f32")
    assert read_head(out) == described.head


def older(name):
    """Return the name that a tensor had in the first checkpoints of BERT."""
    ends = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    return next((name.removesuffix(k) + v for k, v in ends.items() if name.endswith(k)), name)


@pytest.mark.cpu
def test_the_first_checkpoints_of_bert(tmp_path, caplog):
    """bert-base-uncased: gamma and beta, a prefix, and heads of its training."""
    model = save(tmp_path / "new", CASES["bert"])
    new = load_file(tmp_path / "new" / "model.safetensors")
    old = {f"bert.{older(name)}": tensor for name, tensor in new.items()}
    old |= {
        "cls.predictions.transform.LayerNorm.gamma": torch.ones(64),
        "cls.seq_relationship.weight": torch.ones(2, 64),
        "qa_outputs.weight": torch.ones(2, 64),
    }
    assert "bert.encoder.layer.1.output.LayerNorm.beta" in old
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    save_file(old, tmp_path / "old" / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    config |= {"architectures": ["BertForMaskedLM"], "output_past": True}
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    tokens = np.random.default_rng(0).integers(2, 320, 33).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([tokens]))[0][0].mean(0).numpy()
    got = Runner(compiled(tmp_path / "old")).step({0: tokens}, "embed")[0][-1]
    assert np.abs(got - expected).max() < 1e-5
    assert "does not use these tensors:\n  - qa_outputs.weight" in caplog.text


CLASSES = {"architectures": ["BertForSequenceClassification"]}


def class_of(folder, config):
    (folder / "config.json").write_text(json.dumps(config))
    return class_head(read_folder(folder))


@pytest.mark.parametrize(
    ("fields", "labels", "activation"),
    [
        ({"id2label": {"0": "no", "1": "yes"}}, ("no", "yes"), "softmax"),
        ({"id2label": {"0": "LABEL_0"}}, ("LABEL_0",), "sigmoid"),
        ({}, ("LABEL_0", "LABEL_1"), "softmax"),
        ({"problem_type": "multi_label_classification"}, ("LABEL_0", "LABEL_1"), "sigmoid"),
        (
            {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
            ("LABEL_0", "LABEL_1"),
            "identity",
        ),
    ],
)
def test_classes(tmp_path, fields, labels, activation):
    assert class_of(tmp_path, CLASSES | fields) == ClassHead(labels=labels, activation=activation)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id2label": {"1": "yes"}}, "id2label"),
        ({"id2label": {"0": 3}}, "id2label"),
        ({"num_labels": 2**30}, "num_labels"),
        ({"sbert_ce_default_activation_function": "a.Mish"}, "a.Mish"),
    ],
)
def test_classes_that_cannot_be(tmp_path, fields, said):
    with pytest.raises(ModelError, match=said):
        class_of(tmp_path, CLASSES | fields)


IDENTITY = "torch.nn.modules.linear.Identity"
PAIR = [
    {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}},
    {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
    {"Sequence": {"id": "B", "type_id": 1}},
]


def test_a_cross_encoder_of_a_newer_folder(tmp_path):
    """ms-marco-MiniLM as sentence-transformers 5.4 and later save it, with modules.json."""
    kind = transformers.AutoModelForSequenceClassification
    save(tmp_path, CASES["bert"], kind, num_labels=1)
    modules(tmp_path)
    about = {"model_type": "CrossEncoder", "activation_fn": IDENTITY, "prompts": {}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(about))
    task = {"transformer_task": "sequence-classification", "module_output_name": "scores"}
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps(task))
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 100}')
    head = ClassHead(labels=("LABEL_0",), activation="identity", max_tokens=100)
    assert describe(read_folder(tmp_path)).head == head
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
    with pytest.raises(ModelError, match="is a cross-encoder of sentence-transformers"):
        describe(read_folder(tmp_path))
    modules(tmp_path, "Pooling", "Dense")
    with pytest.raises(ModelError, match="a cross-encoder with the modules Transformer -> Pooling"):
        describe(read_folder(tmp_path))


@pytest.mark.parametrize(
    ("processor", "separator"),
    [
        ({"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}, 102),
        ({"type": "TemplateProcessing", "pair": PAIR}, 102),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "Bert"}]}, None),
        ({"type": "TemplateProcessing", "pair": PAIR[:2]}, None),
        ({"type": "TemplateProcessing", "pair": [3, {"Sequence": 1}, {"SpecialToken": 2}]}, None),
        ({"type": "BertProcessing", "sep": 3}, None),
        (None, None),
    ],
)
def test_the_separator_of_the_tokenizers_pairs(tmp_path, processor, separator):
    """The tokenizer_config.json of bert-base-uncased names no separator."""
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    tokenizer = {"added_tokens": [{"id": 102, "content": "[SEP]"}], "post_processor": processor}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert class_of(tmp_path, CLASSES).separator == separator


def test_one_step_holds_a_complete_text(tmp_path):
    save(tmp_path, CASES["modernbert"], max_position_embeddings=8192)
    described = describe(read_folder(tmp_path))

    def limits(**given):
        deployment = ArtifactSpec(target="cpu", limits=Limits(**given)).deployment(described)
        return deployment.context, deployment.prefill_chunk

    assert limits() == (2048, 2048)
    assert limits(context=5000) == (5000, 5000)
    assert limits(context=100) == (100, 512)
    assert limits(prefill_chunk=256) == (256, 256)
    with pytest.raises(UsageError, match="one step of an encoder has to hold a text of 300 tokens"):
        limits(context=300, prefill_chunk=256)

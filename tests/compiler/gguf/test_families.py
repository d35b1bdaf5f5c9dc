"""A folder and its GGUF are the same model: the same attention, and the same weights bit by bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from wherry.compiler.api import Limits, convert_model, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.checkpoint.gguf.architectures.table import family_of
from wherry.compiler.checkpoint.gguf.header import read_header
from wherry.compiler.checkpoint.gguf.opening import open_gguf, open_model
from wherry.compiler.load import describe
from wherry.compiler.weight_cache import load_state
from wherry.errors import ModelError

from ...models.families import CASES as FAMILIES
from ...support import tiny_models
from . import writing

GEMMA3 = {
    "head_dim": 32,
    "sliding_window": 19,
    "query_pre_attn_scalar": 32,
    "layer_types": ["sliding_attention"] * 2,
}
CASES = {
    "llama": ("llama", {"tie_word_embeddings": True}, {}),
    "qwen3": ("qwen3", {"head_dim": 32}, {}),
    "gemma3": ("gemma3_text", GEMMA3, {"attention.sliding_window": 19}),
}


def shards(folder):
    return [path.read_bytes() for path in sorted(folder.glob("params_shard_*.bin"))]


@pytest.mark.parametrize("architecture", CASES)
def test_a_folder_and_its_gguf_convert_to_the_same_bytes(architecture, tmp_path):
    model_type, config, metadata = CASES[architecture]
    folder = tmp_path / "folder"
    tiny_models.save(folder, model_type, **config)
    file = writing.of_folder(folder, tmp_path / "m.gguf", architecture, metadata=metadata)
    from_folder, from_gguf = (
        describe(read_folder(folder)),
        describe(read_folder(convert_model(str(file), tmp_path / "g"))),
    )
    for layer in range(from_folder.config.num_hidden_layers):
        assert from_folder.config.attention_shape(layer) == from_gguf.config.attention_shape(layer)
    assert from_folder.config.scales() == from_gguf.config.scales()
    assert from_folder.config.rms_norm_eps == from_gguf.config.rms_norm_eps
    converted = convert_model(str(folder), tmp_path / "f", quant="q0f32")
    if architecture == "gemma3":  # a norm was rounded when one was added to it
        assert shards(converted) != shards(tmp_path / "g")
        return
    assert shards(converted) == shards(tmp_path / "g")


def granite(tmp_path, name):
    """(transformers' model, its folder, its GGUF file) of a case."""
    config = {**FAMILIES[name].config, "time_step_limit": [0.0, float("inf")]}
    model = tiny_models.save(tmp_path / "folder", "granitemoehybrid", **config)
    file = writing.granite_hybrid(tmp_path / "folder", tmp_path / "m.gguf")
    return model, tmp_path / "folder", file


@pytest.mark.parametrize("name", ["granitemoehybrid", "granitemoehybrid-dense"])
def test_granite_4_and_its_gguf_have_the_same_weights(name, tmp_path):
    _, folder, file = granite(tmp_path, name)
    from_folder, from_gguf = (
        describe(read_folder(folder)),
        describe(read_folder(convert_model(str(file), tmp_path / "g"))),
    )
    # The file lacks the first two; the others are compared as the shapes that they make.
    other = ("max_position_embeddings", "time_step_limit", "head_dim", "rope_parameters")
    for field in dataclasses.fields(from_folder.config):
        if field.name not in other:
            got, expected = (getattr(x.config, field.name) for x in (from_gguf, from_folder))
            assert got == expected or not (got or expected), field.name
    assert from_folder.config.mamba2() == from_gguf.config.mamba2()
    for layer in range(from_folder.config.num_hidden_layers):
        assert from_folder.config.attention_shape(layer) == from_gguf.config.attention_shape(layer)
    expected = load_state(convert_model(str(folder), tmp_path / "f", quant="q0f32"))
    got = load_state(tmp_path / "g")
    assert got.keys() == expected.keys()
    for parameter, value in expected.items():
        # A_log comes from its exponential.
        apart = 1e-6 if parameter.endswith("A_log") else 0
        np.testing.assert_allclose(got[parameter], value, rtol=0, atol=apart, err_msg=parameter)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["granitemoehybrid", "granitemoehybrid-dense"])
def test_granite_4_from_gguf_against_transformers(name, tmp_path):
    model, _, file = granite(tmp_path, name)
    prompt = np.random.default_rng(3).integers(0, 320, 70).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0].numpy()
    limits = Limits(context=128, max_batch=64, prefill_chunk=64)
    folder = ensure_artifact(str(file), limits=limits, quant="q0f32", kv_dtype="float32")
    run = tiny_models.Runner(folder)
    got = np.concatenate([run.step({0: part})[0] for part in (prompt[:40], prompt[40:])])
    assert np.abs(expected).max() > 0.5
    assert np.abs(got - expected).max() <= 2e-4


def test_an_unknown_value_is_an_error(tmp_path):
    with pytest.raises(ModelError, match=r"llama\.attention\.causal_mask_kind: 3"):
        open_model(writing.llama(tmp_path / "m.gguf", **{"attention.causal_mask_kind": 3}))


def test_multi_token_prediction_is_dropped(tmp_path):
    """Its blocks come after the layers, which `block_count` counts as well."""
    extra = {
        "blk.2.nextn.eh_proj.weight": np.ones((64, 128), np.float32),
        "blk.2.attn_norm.weight": np.ones(64, np.float32),
    }
    sizes = {"block_count": 3, "nextn_predict_layers": 1}
    file = writing.llama(tmp_path / "m.gguf", layers=2, tensors=extra, **sizes)
    assert open_model(file).config["num_hidden_layers"] == 2
    assert open_gguf(file).shapes == open_gguf(writing.llama(tmp_path / "o.gguf")).shapes
    file = writing.llama(tmp_path / "m.gguf", layers=2, tensors=extra)
    with pytest.raises(ModelError, match=r"blk\.2\.nextn\.eh_proj"):
        open_gguf(file)


def test_gate_and_up_of_experts_in_one_tensor(tmp_path):
    """llama.cpp's --fuse-gate-up-exps: both halves of each expert."""
    rng = np.random.default_rng(3)
    gate, up = (rng.normal(size=(3, 96, 64)).astype(np.float32) for _ in range(2))
    tensors = {"blk.0.ffn_gate_inp.weight": np.ones((3, 64), np.float32)}
    tensors["blk.0.ffn_gate_up_exps.weight"] = np.concatenate([gate, up], axis=1)
    tensors["blk.0.ffn_down_exps.weight"] = np.zeros((3, 64, 96), np.float32)
    sizes = {"expert_count": 3, "expert_used_count": 2}
    read = open_gguf(writing.llama(tmp_path / "m.gguf", layers=1, tensors=tensors, **sizes))
    expert = "model.layers.0.block_sparse_moe.experts.{}.{}.weight"
    for i in range(3):
        np.testing.assert_array_equal(read.read(expert.format(i, "w1")), gate[i])
        np.testing.assert_array_equal(read.read(expert.format(i, "w3"), 5, 9), up[i, 5:9])


@pytest.mark.parametrize(
    ("architecture", "metadata", "model_type"),
    [
        ("llama", {}, "llama"),
        ("llama", {"expert_count": 8}, "mixtral"),
        ("olmo2", {"attention.sliding_window": 4096}, "olmo3"),
        ("mistral3", {}, "mistral"),
        ("mistral3", {"attention.temperature_scale": 0.1}, "ministral3"),
        ("deepseek2", {"expert_gating_func": 1}, "deepseek_v2"),
        ("deepseek2", {"expert_gating_func": 2}, "deepseek_v3"),
        ("deepseek2", {"vocab_size": 154880}, "deepseek_v3"),  # GLM-4.7-Flash
    ],
)
def test_architectures_of_several_families(architecture, metadata, model_type, tmp_path):
    file = writing.write(tmp_path / "m.gguf", architecture, {}, metadata)
    assert family_of(read_header(file)).model_type == model_type


def test_an_unknown_architecture_lists_those_that_are_read(tmp_path):
    file = writing.write(tmp_path / "m.gguf", "mamba", {}, {"block_count": 1})
    with pytest.raises(ModelError, match=r"architecture 'mamba'.*gemma3, gemma3n, gemma4, .*llama"):
        open_model(file)

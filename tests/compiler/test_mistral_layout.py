"""Models in Mistral's own layout: params.json and consolidated.safetensors."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from wherry.compiler.api import Limits, convert_model, ensure_artifact
from wherry.compiler.checkpoint.folder import read_folder
from wherry.compiler.load import describe
from wherry.compiler.model_folder import model_folder
from wherry.compiler.weight_cache import load_state
from wherry.errors import ModelError
from wherry.hub.names import is_mistral

from ..support import tiny_models

NAMES = {
    "model.embed_tokens": "tok_embeddings",
    "model.norm": "norm",
    "lm_head": "output",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.gate": "feed_forward.gate",
}
YARN = {"original_max_position_embeddings": 20, "factor": 4.0, "beta": 8.0, "alpha": 1.0}
HF_YARN = {
    "rope_type": "yarn",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 20,
    "beta_fast": 8.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
WINDOW = {"sliding_window": 13, "rope_theta": 10000.0}
# model_type -> fields of its config.json, and of params.json besides the sizes
CASES = {
    "mistral": ({"sliding_window": None, "rope_theta": 1000000.0}, {}),
    "mistral-window": ({**WINDOW, "tie_word_embeddings": True}, {"sliding_window": 13}),
    "mixtral": (
        {
            "sliding_window": None,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_theta": 1000000.0,
        },
        {"moe": {"num_experts": 4, "num_experts_per_tok": 2}},
    ),
    "ministral3": (
        {"rope_parameters": {**HF_YARN, "llama_4_scaling_beta": 0.5}},
        {
            "rope_theta": 5000.0,
            "yarn": {**YARN, "apply_scale": False},
            "llama_4_scaling": {"original_max_position_embeddings": 20, "beta": 0.5},
        },
    ),
}


def published(tmp_path, name, **other):
    """(transformers' model, its folder, the same as Mistral publishes it)."""
    config, own = CASES[name]
    rope = {"rope_type": "default", "rope_theta": config.get("rope_theta", 1.0)}
    fields = {"rope_parameters": rope, **{k: v for k, v in config.items() if k != "rope_theta"}}
    kind = name.partition("-")[0]
    model = tiny_models.save(tmp_path / "hf", kind, head_dim=32, **fields)
    folder = tmp_path / "mistral"
    folder.mkdir()
    tensors = {}
    for hf_name, array in load_file(tmp_path / "hf" / "model.safetensors").items():
        tensors |= _as_mistral(hf_name, array)
    save_file(tensors, folder / "consolidated.safetensors")
    params = {
        "dim": 64,
        "n_layers": 2,
        "head_dim": 32,
        "hidden_dim": 96,
        "n_heads": 4,
        "n_kv_heads": 2,
        "norm_eps": model.config.rms_norm_eps,
        "vocab_size": 320,
        "tied_embeddings": config.get("tie_word_embeddings", False),
        "max_position_embeddings": 256,
        **own,
        **other,
    }
    (folder / "params.json").write_text(json.dumps(params))
    return model, tmp_path / "hf", folder


def _as_mistral(name, array):
    base = name.removesuffix(".weight")
    layer, part = "", base
    if base.startswith("model.layers."):
        _, _, number, part = base.split(".", 3)
        layer = f"layers.{number}."
    if part == "mlp.experts.gate_up_proj":
        gate, up = np.split(array, 2, axis=1)
        experts = f"{layer}feed_forward.experts."
        experts_of_gate = {f"{experts}{i}.w1.weight": w for i, w in enumerate(gate)}
        return experts_of_gate | {f"{experts}{i}.w3.weight": w for i, w in enumerate(up)}
    if part == "mlp.experts.down_proj":
        return {f"{layer}feed_forward.experts.{i}.w2.weight": w for i, w in enumerate(array)}
    if expert := part.partition("block_sparse_moe.")[2]:
        return {f"{layer}feed_forward.{expert}.weight": array}
    if part in ("self_attn.q_proj", "self_attn.k_proj"):  # the halves of a head become pairs
        array = array.reshape(-1, 2, 16, 64).swapaxes(1, 2).reshape(array.shape)
    return {f"{layer}{NAMES[part]}.weight": np.ascontiguousarray(array)}


@pytest.mark.parametrize("name", CASES)
def test_both_layouts_convert_to_the_same_weights(name, tmp_path):
    _, hf_folder, folder = published(tmp_path, name)
    assert is_mistral(folder)
    mistral_folder = model_folder(str(folder))
    described, expected = describe(mistral_folder), describe(read_folder(hf_folder))
    assert described.arch is expected.arch
    for layer in range(2):
        assert described.config.attention_shape(layer) == expected.config.attention_shape(layer)
        assert described.config.rope_of(layer) == expected.config.rope_of(layer)
    assert described.config.rms_norm_eps == expected.config.rms_norm_eps
    got = load_state(convert_model(str(folder), tmp_path / "a", quant="q0f32"))
    hf_weights = load_state(convert_model(str(hf_folder), tmp_path / "b", quant="q0f32"))
    assert got.keys() == hf_weights.keys()
    for parameter, value in hf_weights.items():
        np.testing.assert_array_equal(got[parameter], value, err_msg=parameter)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_logits_against_transformers(name, tmp_path):
    model, _, folder = published(tmp_path, name)
    prompt = np.random.default_rng(3).integers(0, 320, 70).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0].numpy()
    limits = Limits(context=128, max_batch=64, prefill_chunk=64)
    artifact = ensure_artifact(str(folder), limits=limits, quant="q0f32", kv_dtype="float32")
    run = tiny_models.Runner(artifact)
    got = np.concatenate([run.step({0: part})[0] for part in (prompt[:40], prompt[40:])])
    assert np.abs(expected).max() > 0.5
    assert np.abs(got - expected).max() <= 2e-4


def test_a_vision_part_is_left_out(tmp_path):
    _, _, folder = published(tmp_path, "mistral", vision_encoder={"hidden_size": 32})
    tensors = load_file(folder / "consolidated.safetensors")
    tensors["vision_encoder.patch_conv.weight"] = np.ones((8, 3), np.float32)
    save_file(tensors, folder / "consolidated.safetensors")
    described = describe(read_folder(convert_model(str(folder), tmp_path / "a", quant="q0f32")))
    assert described.arch.name == "mistral"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"quantization": {"qformat_weight": "fp8_e4m3"}}, "quantization: found"),
        ({"wings": 2}, r"wings: 2 is not known"),
        ({"model_type": "mamba"}, r"model_type: found 'mamba', supported is 'transformer'"),
        ({"moe": {"num_experts": 8}}, "moe is .*expected num_experts, num_experts_per_tok"),
        ({"moe": 8}, "moe: found 8, expected an object"),
        ({"dim": None, "n_heads": "four"}, "hidden_size|num_attention_heads"),
        ({"head_dim": 24}, "no heads of 24 dimensions"),
    ],
)
def test_params_that_are_not_read(tmp_path, other, said):
    _, _, folder = published(tmp_path, "mistral", **other)
    with pytest.raises(ModelError, match=said):
        convert_model(str(folder), tmp_path / "a", quant="q0f32")


def test_a_changed_folder_is_read_again(tmp_path):
    _, _, folder = published(tmp_path, "mistral")
    first = describe(model_folder(str(folder))).config
    params = json.loads((folder / "params.json").read_text())
    (folder / "params.json").write_text(json.dumps({**params, "rope_theta": 9.0}))
    (folder / "tokenizer.model.v3").write_bytes(b"pieces")
    second = model_folder(str(folder))
    assert describe(second).config.rope.theta == 9.0 != first.rope.theta
    assert (second.path / "tokenizer.model").read_bytes() == b"pieces"

"""BitNet as it is published: ternary weights, and rows rounded to 8 bits, against transformers.

transformers' own functions pack the weights, and its own linears compute what is expected.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers.integrations.bitnet import pack_weights, replace_with_bitnet_linear

from wherry.compiler.api import convert_model
from wherry.compiler.load import families
from wherry.compiler.weight_marker import own_of
from wherry.models.arch import read_config

from ..support import gpu
from ..support.tiny_models import Runner, compiled, save

SIZES = {"num_hidden_layers": 2, "hidden_size": 128, "intermediate_size": 192}
CHUNKS = ((0, 9), (9, 10), (10, 11), (11, 50), (50, 70))  # tokens
SETTINGS = {"quant_method": "bitnet", "quantization_mode": "offline", "linear_class": "bitlinear"}
PUBLISHED = {  # of microsoft/bitnet-b1.58-2B-4T
    "auto_map": {"AutoConfig": "configuration_bitnet.BitNetConfig"},
    "hidden_act": "relu2",
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "max_position_embeddings": 4096,
    "model_type": "bitnet",
    "num_attention_heads": 20,
    "num_hidden_layers": 30,
    "num_key_value_heads": 5,
    "quantization_config": {**SETTINGS, "linear_class": "autobitlinear"},
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "vocab_size": 128256,
}


def published(folder, kind, model_type="bitnet"):
    """Save a model with ternary weights; returns a prompt, its logits, and those of float rows."""
    model = save(folder, model_type, tie_word_embeddings=True, **SIZES)
    model.lm_head = torch.nn.Linear(1, 1)  # tied, and no BitLinear
    tensors, published_tensors = {}, {}
    for name, p in model.state_dict().items():
        if "_proj.weight" in name:
            mean = p.abs().mean()
            q = (p / mean).round().clamp(-1, 1)
            scale = (mean if kind == "autobitlinear" else 1 / mean).bfloat16().reshape(1)
            published_tensors[name.removesuffix(".weight")] = q, scale
            tensors |= {name: pack_weights(q.clone()), f"{name}_scale": scale}
        elif not name.startswith("lm_head"):
            tensors[name] = p.clone()
    save_file(tensors, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {**SETTINGS, "linear_class": kind}
    (folder / "config.json").write_text(json.dumps(config))
    model.lm_head = torch.nn.Linear(*model.model.embed_tokens.weight.shape[::-1], bias=False)
    model.lm_head.weight = model.model.embed_tokens.weight
    prompt = np.random.default_rng(4).integers(0, 320, 70).tolist()
    with torch.no_grad():
        for name, (q, scale) in published_tensors.items():
            own = 1 / scale.float() if kind == "bitlinear" else scale.float()
            model.get_submodule(name).weight.copy_(q * own)
    plain = logits_of(model, prompt)
    rest = SimpleNamespace(quantization_mode="offline", use_rms_norm=False, rms_norm_eps=1e-6)
    rest.linear_class = kind
    replace_with_bitnet_linear(model, ["lm_head"], rest)
    for name, (q, scale) in published_tensors.items():
        module = model.get_submodule(name)
        module.weight_scale = scale.float()
        if kind == "bitlinear":
            module.weight, module.dtype = tensors[f"{name}.weight"], torch.float32
        else:
            module.weight = torch.nn.Parameter(q, requires_grad=False)
    return prompt, logits_of(model, prompt), plain


def logits_of(model, prompt):
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        return model.eval()(torch.tensor([prompt])).logits[0].numpy()


def check(folder, prompt, expected, plain, target="cpu", **choices):
    """Whole and in chunks: the same bits, and the numbers of transformers' own linears.

    What lies halfway between two integers may be rounded to the other one, which changes a row, and
    through attention those after it, by less than floats in the place of all integers would.
    """
    artifact = compiled(folder, target=target, **choices)
    full = Runner(artifact, device=target).step({0: prompt})[0]
    run = Runner(artifact, device=target)
    parts = np.concatenate([run.step({0: prompt[a:b]})[0] for a, b in CHUNKS])
    assert np.array_equal(parts, full)
    errors, cost = (np.abs(x - expected).max(1) for x in (full, plain))
    assert np.quantile(errors, 0.1) <= 1e-5
    assert errors.mean() <= cost.mean() / 3
    assert cost.min() >= 1e-2


@pytest.mark.cpu
@pytest.mark.parametrize(
    "kind", ["autobitlinear", pytest.param("bitlinear", marks=pytest.mark.nightly)]
)
def test_int8_kernels_have_the_integers_that_it_was_trained_with(kind, tmp_path):
    prompt, expected, plain = published(tmp_path, kind)
    check(tmp_path, prompt, expected, plain, quant="kept")
    own = own_of(convert_model(str(tmp_path), quant="kept"))
    kinds = {parts[0].scheme.name for name, parts in own.items() if "_proj" in name}
    assert kinds == {"TERNARY"}


@pytest.mark.cpu
@pytest.mark.nightly
@pytest.mark.parametrize("model_type", ["llama", "qwen3"])
def test_linears_of_other_families_round_their_rows_too(model_type, tmp_path):
    check(tmp_path, *published(tmp_path, "bitlinear", model_type), quant="kept")


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("kind", gpu.KINDS)
def test_devices(kind, tmp_path):
    gpu.device(kind)
    prompt, expected, plain = published(tmp_path, "autobitlinear")
    check(tmp_path, prompt, expected, plain, target=kind, quant="kept")


def test_published_fields_are_known():
    config = read_config(families()["bitnet"].config, PUBLISHED)
    assert (config.head_size, config.kv_heads, config.rope.theta) == (128, 5, 500000.0)

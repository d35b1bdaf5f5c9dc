"""What decides which experts a row has keeps its bits, whatever the scheme."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers

from wherry.compiler.api import convert_model
from wherry.compiler.library.export import exact_parameters, parameters
from wherry.compiler.load import families
from wherry.compiler.weight_cache import load_state
from wherry.models.arch import read_config
from wherry.quant.scheme import find

from ..support.tiny_models import COMMON, Runner, compiled, round_weights, save
from .families import CASES

SCHEME = "q4f16_1"
DECIDES = (".router.weight", ".router.bias", ".router.proj.weight", ".per_expert_scale")
DECIDES += (".shared_expert_gate.weight", ".e_score_correction_bias")


def test_a_half_would_lose_what_is_kept(tmp_path):
    case = CASES["deepseek_v3"]
    model = save(tmp_path / "model", case.model_type, **case.config)
    tensors = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    state = load_state(convert_model(str(tmp_path / "model"), tmp_path / "out", quant=SCHEME))
    mlp = "model.layers.1.mlp"
    for param, name in (
        (f"{mlp}.e_score_correction_bias", f"{mlp}.gate.e_score_correction_bias"),
        (f"{mlp}.router.weight", f"{mlp}.gate.weight"),
    ):
        assert (tensors[name].astype("f2") != tensors[name]).any()
        assert state[param].dtype == np.float32 and np.array_equal(state[param], tensors[name])
    assert state["model.norm.weight"].dtype == np.float16


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if "expert" in str(case.config) and case.config.get("num_local_experts") != 0
    ],
)
def test_every_mixture_has_exact_routers(name):
    case = CASES[name]
    hf = transformers.AutoConfig.for_model(case.model_type, **{**COMMON, **case.config})
    arch = families()[case.model_type]
    config = read_config(arch.config, json.loads(hf.to_json_string()))
    deciding = {n for n in parameters(arch, config) if n.endswith(DECIDES)}
    assert deciding and deciding <= exact_parameters(arch, config)


@pytest.mark.nightly
@pytest.mark.cpu
def test_float32_routers_among_weights_with_half_scales(tmp_path):
    case = CASES["deepseek_v3"]
    model = save(tmp_path / "model", case.model_type, **case.config)
    round_weights(model, find(SCHEME))
    prompt = np.random.default_rng(4).integers(0, model.config.vocab_size, 40).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0].numpy()
    folder = compiled(tmp_path / "model", quant=SCHEME, activations="float")
    assert np.abs(Runner(folder).step({0: prompt})[0] - expected).max() <= 2e-4

"""Quantized tiny models, converted and compiled, against transformers with the same weights."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

from wherry.compiler.api import convert_model
from wherry.compiler.checkpoint.kept import AllowedSchemes, KeptSchemes
from wherry.compiler.weight_marker import own_of

from ...support.tiny_models import Runner, compiled, save
from . import writing
from .formats import CASES

pytestmark = pytest.mark.cpu
SIZES = {"hidden_size": 256, "intermediate_size": 384, "num_attention_heads": 4}
SIZES["num_hidden_layers"] = 1
PROMPT = np.random.default_rng(4).integers(0, 320, 40).tolist()


def quantize(folder, case):
    """Replace the linears of a saved model by quantized ones; returns the logits with them."""
    with torch.no_grad():
        return quantized(folder, case)(torch.tensor([PROMPT])).logits[0].numpy()


def quantized(folder, case):
    """Replace the linears of a saved model by quantized ones; returns transformers' with them.

    The order of act-order differs from matrix to matrix, but for k and v.
    """
    model = save(folder, "llama", **SIZES)
    tensors = {}
    for name, p in model.state_dict().items():
        w = p.numpy()
        if "_proj" not in name:
            tensors[name] = w if w.ndim == 1 else w.astype(np.float16)
            p.copy_(torch.from_numpy(tensors[name].astype(np.float32)))
            continue
        arrays, left = _written(case, w, name)
        tensors |= {name.removesuffix("weight") + s: array for s, array in arrays.items()}
        p.copy_(torch.from_numpy(np.ascontiguousarray(left)))
    writing.write(folder / "model.safetensors", tensors)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | case.config))
    if case.rounds_rows:
        for name, module in model.named_modules():
            if name.endswith("_proj"):
                module.register_forward_pre_hook(_round_rows)
    return model


def _round_rows(_module, args):
    """What BitNet's linears do with their inputs."""
    scale = 127 / args[0].abs().amax(-1, keepdim=True)
    return (torch.round(args[0] * scale) / scale,)


def _written(case, w, name):
    order = {"q_proj": 1, "k_proj": 2, "v_proj": 2, "gate_proj": 3, "up_proj": 3, "o_proj": 4}
    if "order" in getattr(case.write, "keywords", {}):
        seed = order.get(name.split(".")[-2], 5)
        return case.write.func(w, **{**case.write.keywords, "order": seed})
    return case.write(w)


def logits(folder, **choices):
    run = Runner(compiled(folder, **choices))
    return np.concatenate([run.step({0: PROMPT[a:b]})[0] for a, b in ((0, 9), (9, 10), (10, 40))])


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_logits(name, tmp_path, caplog):
    """Without `--quant`, bits stay where all targets have kernels; "kept" keeps the others, too.

    What no scheme has is rounded, with a line that says so; "q0f32" rounds nothing.
    """
    case = CASES[name]
    expected = quantize(tmp_path, case)
    if case.scheme is None:
        quant = "q0f32"
    else:
        quant = None if case.scheme.startswith("q") else "kept"
    got = logits(tmp_path, quant=quant, activations="float")
    errors = np.abs(got - expected).max(1)
    # What lies halfway between two integers may be rounded to the other one, in a row or two.
    assert (np.median(errors) if case.rounds_rows else errors.max()) <= 2e-4
    assert errors.max() <= 0.1
    assert not caplog.messages
    own = own_of(convert_model(str(tmp_path), quant=quant))
    names = {part.scheme.name for parts in own.values() for part in parts}
    assert names == ({case.scheme, "q0f16", "exact"} if case.scheme else set())


@pytest.mark.parametrize("name", ["nf4", "mlx-4"])
def test_what_is_rounded_is_said(name, tmp_path, caplog):
    quantize(tmp_path, CASES[name])
    keep = frozenset({"q4f16_1", "q0f16"})  # as on a target without kernels for MLX
    convert_model(str(tmp_path), tmp_path / "out", allowed=AllowedSchemes(KeptSchemes(keep, keep)))
    kind = {"nf4": "bitsandbytes nf4", "mlx-4": "MLX 4-bit"}[name]
    text = f"{tmp_path.name}: {kind} (100%) of the quantized weights are re-encoded as q8f16_1."
    first, second = caplog.messages
    assert first == text
    changed = re.fullmatch(r".*: re-encoding changed these weights by ([\d.]+)% .*", second)
    # 254 levels of the largest of 32 weights, 2.2 standard deviations: 1 / (127 / 2.2 * sqrt(12))
    assert changed and 0.3 < float(changed[1]) < 0.7


EXPERTS = {"moe_intermediate_size": 128, "num_experts": 4, "num_experts_per_tok": 2}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["awq", "mlx-4"])
def test_experts_with_zero_points(name, tmp_path, caplog):
    """Their bits stay, with kernels; transformers has the same weights as floats."""
    case, floats = CASES[name], tmp_path / "floats"
    save(floats, "qwen3_moe", **SIZES, **EXPERTS)
    tensors, left = {}, {}
    for tensor, w in load_file(floats / "model.safetensors").items():
        if "_proj" in tensor:
            arrays, left[tensor] = _written(case, w, tensor)
            tensors |= {tensor.removesuffix("weight") + s: array for s, array in arrays.items()}
        else:
            tensors[tensor] = w if w.ndim == 1 or "gate" in tensor else w.astype(np.float16)
            left[tensor] = tensors[tensor].astype(np.float32)
    config = json.loads((floats / "config.json").read_text()) | case.config
    (tmp_path / "config.json").write_text(json.dumps(config))
    writing.write(tmp_path / "model.safetensors", tensors)
    writing.write(floats / "model.safetensors", left)
    model = AutoModelForCausalLM.from_pretrained(floats, dtype=torch.float32).eval()
    with torch.no_grad():
        expected = model(torch.tensor([PROMPT])).logits[0].numpy()
    got = logits(tmp_path, quant=None)
    errors = np.linalg.norm(got - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(errors) < 0.02  # int8 activations; a few rows get another expert
    assert errors.max() < 0.5
    assert not caplog.messages
    own = own_of(convert_model(str(tmp_path)))
    assert [p.scheme.name for p in own["model.layers.0.mlp.experts.down_proj.weight"]] == [
        case.scheme
    ]

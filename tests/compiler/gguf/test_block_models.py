"""Models whose layers mix block types: their numbers are those of the dequantized weights."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import Limits, ensure_artifact
from wherry.compiler.forecast import described_folder, forecast

from ...support import gpu
from ...support.tiny_models import Runner
from . import writing

pytestmark = pytest.mark.cpu

# Types of tensors by parts of their names; the last is of the others.
MIXES = {
    "k-quants": {"embd": "Q6_K", "attn_v": "Q6_K", "ffn_gate": "Q5_K", "down": "Q6_K", "": "Q4_K"},
    "blocks": {"embd": "Q8_0", "attn_q": "Q4_0", "attn_k": "Q5_0", "attn_v": "Q5_1", "": "Q4_1"},
    "others": {"embd": "Q8_0", "attn": "Q3_K", "gate": "IQ4_NL", "up": "IQ4_XS", "": "Q2_K"},
}
# Experts whose types differ by layer, and by gate and up. Routers are floats.
EXPERTS = {
    "experts": {
        "gate_inp": "F32",
        "0.ffn_down_exps": "Q6_K",
        "1.ffn_down_exps": "Q5_0",
        "1.ffn_up_exps": "Q5_K",
        "": "Q4_K",
    },
    "other experts": {
        "gate_inp": "F32",
        "0.ffn_down_exps": "Q5_1",
        "0.ffn": "Q4_1",
        "1.ffn_down_exps": "Q8_0",
        "": "Q4_0",
    },
}
LIMITS = Limits(context=128, max_batch=64, prefill_chunk=64)  # all rows have logits
PROMPT = np.random.default_rng(4).integers(0, 300, 50).tolist()


def write(folder: Path, mix: str) -> str:
    sizes = {"size": 256, "inner": 512, "layers": 1, "context_length": 128}
    if mix in EXPERTS:
        return str(writing.experts(folder / "experts.gguf", EXPERTS[mix]))
    return str(writing.llama(folder / f"{mix}.gguf", kinds=MIXES[mix], **sizes))


def logits(file: str, target: str = "cpu", **options) -> np.ndarray:
    folder = ensure_artifact(file, target=target, limits=LIMITS, **options)
    run = Runner(folder, device=target.partition(":")[0])
    return np.concatenate([run.step({0: PROMPT[a:b]})[0] for a, b in ((0, 40), (40, 41), (41, 50))])


def log_softmax(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64) - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


OTHERS = ("blocks", *EXPERTS)


@pytest.mark.parametrize(
    "mix", ["k-quants", *(pytest.param(m, marks=pytest.mark.nightly) for m in OTHERS)]
)
def test_kernels(mix, tmp_path, caplog):
    file = write(tmp_path, mix)
    expected = logits(file, quant="q0f32")
    with caplog.at_level(logging.WARNING):
        got = logits(file)
    assert not [line for line in caplog.messages if "re-encoded" in line]
    assert np.abs(expected).max() > 0.5
    p = log_softmax(expected)
    divergence = (np.exp(p) * (p - log_softmax(got))).sum(-1)
    assert divergence.mean() <= 3e-4 * max(1, expected.var())


@pytest.mark.nightly
def test_a_forecast_has_the_numbers_of_the_manifest(tmp_path):
    file = write(tmp_path, "k-quants")
    manifest = read_manifest(ensure_artifact(file, target="cpu", limits=LIMITS))
    with described_folder(file) as folder:
        predicted = forecast(file, folder, target="cpu", limits=LIMITS)
    assert predicted.quantization == manifest.quantization == "Q4_K"
    assert predicted.memory == manifest.memory


@pytest.mark.parametrize(
    "mix",
    ["k-quants", *(pytest.param(m, marks=pytest.mark.nightly) for m in ("others", *OTHERS))],
)
@pytest.mark.nightly
def test_float_activations(mix, tmp_path):
    """Weights keep their bits, and nothing is rounded."""
    file = write(tmp_path, mix)
    expected = logits(file, quant="q0f32", kv_dtype="float32")
    got = logits(file, activations="float", kv_dtype="float32")
    assert np.abs(got - expected).max() <= 2e-4 * np.abs(expected).max()


@pytest.mark.nightly
@pytest.mark.parametrize("mix", (*MIXES, *EXPERTS))
def test_without_kernels(mix, tmp_path):
    """The references read the blocks on a CPU without a dot product, and round nothing."""
    file = write(tmp_path, mix)
    expected = logits(file, quant="q0f32", kv_dtype="float32")
    got = logits(file, "cpu:x86-64", quant="kept", kv_dtype="float32")
    assert np.abs(got - expected).max() <= 2e-4 * np.abs(expected).max()


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("mix", (*MIXES, *EXPERTS))
@pytest.mark.parametrize("kind", gpu.KINDS)
def test_devices(kind, mix, tmp_path):
    gpu.device(kind)
    file = write(tmp_path, mix)
    expected = logits(file, quant="q0f32", kv_dtype="float32")
    got = logits(file, kind, quant="kept", activations="float", kv_dtype="float32")
    assert np.abs(got - expected).max() <= 1e-3 * np.abs(expected).max()

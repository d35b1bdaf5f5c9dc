"""Every family with 4-bit weights: on CPUs by either kind of activations, and on devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wherry.quant.scheme import find

from ..support import gpu
from ..support.tiny_models import Runner, compiled, round_weights, save
from ..support.web import require_core
from .families import CASES

pytestmark = [pytest.mark.nightly, pytest.mark.cpu]
SCHEME = "q4f32_1"
FAMILIES = tuple(CASES)
CHUNKS = ((0, 9), (9, 10), (10, 11), (11, 50), (50, 70))  # tokens


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    """(checkpoint, prompt, logits that transformers has with the weights that 4 bits leave)."""
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    model = save(folder, case.model_type, **case.config)
    round_weights(model, find(SCHEME))
    prompt = np.random.default_rng(4).integers(0, model.config.vocab_size, 70).tolist()
    with torch.no_grad():
        return folder, prompt, model(torch.tensor([prompt])).logits[0].numpy()


def logits(folder, prompt, target="cpu", activations="auto"):
    made = compiled(folder, quant=SCHEME, target=target, activations=activations)
    run = Runner(made, device=target)
    return np.concatenate([run.step({0: prompt[a:b]})[0] for a, b in CHUNKS])


def log_softmax(x):
    x = x.astype(np.float64) - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_float_activations_give_the_same_numbers(family):
    folder, prompt, expected = family
    assert np.abs(logits(folder, prompt, activations="float") - expected).max() <= 2e-4


def test_int8_activations_give_nearly_the_same_distribution(family):
    folder, prompt, expected = family
    p, q = log_softmax(expected), log_softmax(logits(folder, prompt))
    assert (np.exp(p) * (p - q)).sum(-1).mean() <= 3e-4


@pytest.mark.gpu
@pytest.mark.parametrize("kind", gpu.KINDS)
def test_devices_give_the_same_tokens(family, kind):
    folder, prompt, expected = family
    gpu.device(kind)
    got = logits(folder, prompt, target=kind)
    assert np.abs(got - expected).max() <= 1e-3
    assert np.array_equal(got.argmax(-1), expected.argmax(-1))


def test_browsers_have_kernels_within_their_limits(family):
    """naga takes them all; their numbers are those of Vulkan, whose code comes of the same WGSL."""
    require_core()
    folder, _, _ = family
    assert compiled(folder, quant=SCHEME, target="webgpu").is_dir()

"""Models for Apple's GPUs, their MSL run by an emulator, against transformers and the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from wherry.compiler import api
from wherry.quant.scheme import find as find_scheme
from wherry.runtime.core.library import open_runtime
from wherry.targets import hosts
from wherry.targets.target import find

from ..support import metal
from ..support.tiny_models import Runner, compiled, round_weights, save
from . import test_devices
from .test_devices import greedy

TOLERANCE = 1e-4  # of a logit, float32
CASES = {"llama": {}, "qwen3": {"head_dim": 32}}
LENGTHS = (40, 21, 9)  # of the sequences: several pages, across their borders


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """(the model's folder, the model of transformers)."""
    metal.device()
    folder = tmp_path_factory.mktemp(request.param)
    return folder, save(folder, request.param, **CASES[request.param])


@pytest.fixture
def driven_from_here(monkeypatch):
    """ "metal" with this machine as its host: the host's code has to run, too."""
    here = hosts.here()

    def found(text, host):
        preset = find(text, host)
        return replace(preset, hosts=(here.name,)).on(here) if text == "metal" else preset

    monkeypatch.setattr(api, "find_target", found)


def logits(model, prompt):
    with torch.no_grad():
        return model(torch.tensor([prompt])).logits[0].numpy()


@pytest.mark.cpu
@pytest.mark.usefixtures("driven_from_here")
class TestMetal:
    def test_logits_are_those_of_transformers(self, case):
        folder, model = case
        rng = np.random.default_rng(3)
        prompts = [rng.integers(0, model.config.vocab_size, n).tolist() for n in LENGTHS]
        run = Runner(compiled(folder, target="metal"), device="metal")
        got = {i: [part] for i, part in run.step({i: p[:7] for i, p in enumerate(prompts)}).items()}
        for t in (7, 8):  # all decode
            for i, part in run.step({i: [p[t]] for i, p in enumerate(prompts)}).items():
                got[i].append(part)
        for i, part in run.step({i: prompts[i][9:] for i in (0, 1)}).items():
            got[i].append(part)
        for i, parts in got.items():
            expected = logits(model, prompts[i])
            assert np.abs(expected).max() > 0.5  # a comparison of zeros proves nothing
            assert np.abs(np.concatenate(parts) - expected).max() <= TOLERANCE

    def test_the_core_gives_the_tokens_of_the_cpu(self, case, monkeypatch):
        """Scheduling, copies to and from the device, steps that want no logits."""
        monkeypatch.setattr(test_devices, "open_runtime", lambda kind: open_runtime("cpu"))
        folder, model = case
        rng = np.random.default_rng(1)
        prompts = [rng.integers(3, model.config.vocab_size, n).tolist() for n in (5, 37)]
        told = {t: greedy(compiled(folder, target=t), prompts, 12) for t in ("cpu", "metal")}
        assert [len(tokens) for tokens in told["cpu"]] == [12, 12]
        assert told["metal"] == told["cpu"]

    def test_weights_of_four_bits(self, tmp_path):
        """The default scheme: 4-bit weights, scales and norms stored as halves."""
        metal.device()
        model, scheme = save(tmp_path, "llama"), find_scheme("q4f16_1")
        prompt = np.random.default_rng(5).integers(0, model.config.vocab_size, 21).tolist()
        library = compiled(tmp_path, "q4f16_1", "metal")
        got = Runner(library, device="metal").step({0: prompt})[0]
        round_weights(model, scheme)
        assert np.abs(got - logits(model, prompt)).max() <= TOLERANCE

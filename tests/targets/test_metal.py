"""Models for Apple's GPUs, their MSL run by an emulator, against transformers and the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.compiler import choices
from wherry.runtime.core.library import open_runtime
from wherry.targets import hosts
from wherry.targets.target import find

from ..support import cores, metal
from ..support.tiny_models import Runner
from .test_devices import CASES, Case, greedy, logits

LENGTHS = (40, 21, 9)  # of the sequences: several pages, across their borders


@pytest.fixture(scope="module", params=["llama", pytest.param("qwen3", marks=pytest.mark.nightly)])
def case(request, tmp_path_factory):
    metal.device()
    return Case.save(tmp_path_factory.mktemp(request.param), request.param, *CASES[request.param])


@pytest.fixture
def driven_from_here(monkeypatch):
    """ "metal" with this machine as its host: the host's code has to run, too."""
    here = hosts.here()

    def compiler(text, host):
        preset = find(text, host)
        return replace(preset, hosts=(here.name,)).on(here) if text == "metal" else preset

    monkeypatch.setattr(choices, "find_target", compiler)


@pytest.mark.cpu
@pytest.mark.usefixtures("driven_from_here")
class TestMetal:
    @pytest.mark.nightly
    def test_logits_are_those_of_transformers(self, case):
        rng = np.random.default_rng(3)
        prompts = [rng.integers(0, case.model.config.vocab_size, n).tolist() for n in LENGTHS]
        run = Runner(case.compiled("metal"), device="metal")
        got = {i: [part] for i, part in run.step({i: p[:7] for i, p in enumerate(prompts)}).items()}
        for t in (7, 8):  # all decode
            for i, part in run.step({i: [p[t]] for i, p in enumerate(prompts)}).items():
                got[i].append(part)
        for i, part in run.step({i: prompts[i][9:] for i in (0, 1)}).items():
            got[i].append(part)
        for i, parts in got.items():
            case.close(np.concatenate(parts), logits(case.model, prompts[i]))

    def test_the_core_gives_the_tokens_of_the_cpu(self, case, monkeypatch):
        """Scheduling, copies to and from the device, steps that want no logits."""
        monkeypatch.setattr(cores, "open_runtime", lambda kind: open_runtime("cpu"))
        rng = np.random.default_rng(1)
        prompts = [rng.integers(3, case.model.config.vocab_size, n).tolist() for n in (5, 37)]
        outputs = {t: greedy(case.compiled(t), prompts, 12) for t in ("cpu", "metal")}
        assert [len(tokens) for tokens in outputs["cpu"]] == [12, 12]
        assert outputs["metal"] == outputs["cpu"]

    @pytest.mark.nightly
    def test_weights_of_four_bits(self, tmp_path):
        """The default scheme: scales, norms, keys, values and activations are halves."""
        metal.device()
        case = Case.save(tmp_path, "llama", {}, "q4f16_1")
        prompt = np.random.default_rng(5).integers(0, case.model.config.vocab_size, 21).tolist()
        got = Runner(case.compiled("metal"), device="metal").step({0: prompt})[0]
        case.close(got, logits(case.model, prompt))

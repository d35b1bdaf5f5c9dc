"""Models on devices of our plugins, against transformers and against the CPU target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from wherry.artifact.manifest import read_manifest
from wherry.quant.scheme import find as find_scheme

from ..support import cores
from ..support.cores import started
from ..support.gpu import KINDS, device
from ..support.tiny_models import Runner, compiled, round_weights, save

TOLERANCE = {"q0f32": 2e-4, "q0f16": 1e-2, "q4f16_1": 1e-2}  # of a logit
LENGTHS = (70, 37, 16)  # of the sequences: several pages, across their borders
CASES = {"llama": ({}, "q0f32"), "qwen3": ({"head_dim": 32}, "q0f16")}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    """A kind of devices that this machine has."""
    device(request.param)
    return request.param


@dataclass(frozen=True)
class Case:
    """A model on disk and the same in transformers, with the weights that the scheme leaves it."""

    folder: Path
    model: torch.nn.Module
    quant: str

    @classmethod
    def save(cls, folder, model_type, options, quant):
        model = save(folder, model_type, **options)
        round_weights(model, find_scheme(quant))
        return cls(folder, model, quant)

    def compiled(self, target):
        """In float16 where the scheme's floats are; for the CPU in float32."""
        return compiled(self.folder, self.quant, target, "float32" if target == "cpu" else "auto")

    def close(self, got, expected):
        """Logits, which are not all zeros."""
        assert got.shape == expected.shape and np.abs(expected).max() > 0.5
        assert np.abs(got - expected).max() <= TOLERANCE[self.quant]


@pytest.fixture(scope="module", params=["llama", pytest.param("qwen3", marks=pytest.mark.nightly)])
def case(request, tmp_path_factory):
    return Case.save(tmp_path_factory.mktemp(request.param), request.param, *CASES[request.param])


def prompts_of(model):
    rng = np.random.default_rng(3)
    return [rng.integers(0, model.config.vocab_size, n).tolist() for n in LENGTHS]


def logits(model, prompt):
    with torch.no_grad():
        return model(torch.tensor([prompt])).logits[0].numpy()


@pytest.mark.gpu
class TestModels:
    @pytest.mark.by_day("opencl")
    def test_logits_are_those_of_transformers(self, kind, case):
        prompts = prompts_of(case.model)
        run = Runner(case.compiled(kind), device=kind)
        got = {i: [part] for i, part in run.step({i: p[:9] for i, p in enumerate(prompts)}).items()}
        for t in range(9, min(LENGTHS)):  # all decode
            for i, part in run.step({i: [p[t]] for i, p in enumerate(prompts)}).items():
                got[i].append(part)
        for i, part in run.step({i: prompts[i][min(LENGTHS) :] for i in (0, 1)}).items():
            got[i].append(part)
        for i, parts in got.items():
            case.close(np.concatenate(parts), logits(case.model, prompts[i]))

    @pytest.mark.by_day("opencl")
    def test_a_row_has_the_same_bits_in_any_batch(self, kind, case):
        prompts, library = prompts_of(case.model), case.compiled(kind)
        alone = Runner(library, device=kind).step({0: prompts[1]})[0]
        run = Runner(library, device=kind)
        mixed = [run.step({2: prompts[2], 0: prompts[1][:7], 1: prompts[0]})[0]]
        mixed += [run.step({0: [t], 1: [5]})[0] for t in prompts[1][7:19]]
        mixed += [run.step({1: [3, 4, 5], 0: prompts[1][19:]})[0]]
        assert np.array_equal(np.concatenate(mixed), alone)

    @pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.nightly), 4])
    @pytest.mark.by_day("vulkan")
    def test_the_core_gives_the_tokens_of_the_cpu(self, kind, case, batch):
        prompts = short_prompts(case.model, batch)
        outputs = {t: greedy(case.compiled(t), prompts) for t in ("cpu", kind)}
        assert [len(tokens) for tokens in outputs["cpu"]] == [64] * batch
        assert outputs[kind] == outputs["cpu"]

    @pytest.mark.parametrize("batch", [1, 4])
    @pytest.mark.by_day("vulkan-llama-4")
    def test_shared_pages_of_a_prefix_change_no_token(self, kind, case, batch):
        """Against the CPU, where each sequence has pages of its own."""
        rng = np.random.default_rng(9)
        prefix = rng.integers(3, case.model.config.vocab_size, 40).tolist()  # two pages and a half
        tails = short_prompts(case.model, batch)
        runs = {t: Runner(case.compiled(t), pages=80, device=t) for t in ("cpu", kind)}
        runs[kind].step({"prefix": prefix})
        for i in range(batch):
            runs[kind].fork("prefix", i, 32)
        shared = runs[kind].sequences["prefix"].pages[:2]
        assert all(runs[kind].sequences[i].pages == shared for i in range(batch))
        first = {kind: 32, "cpu": 0}
        outputs = {
            t: follow(run, [(prefix + p)[first[t] :] for p in tails]) for t, run in runs.items()
        }
        assert [len(tokens) for tokens in outputs["cpu"]] == [64] * batch
        assert outputs[kind] == outputs["cpu"]


def short_prompts(model, batch):
    rng = np.random.default_rng(batch)
    return [rng.integers(3, model.config.vocab_size, n).tolist() for n in (5, 23, 40, 1)[:batch]]


def follow(run, prompts, tokens=64):
    """Greedy tokens after the prompts, all in one batch."""
    outputs = [[] for _ in prompts]
    rows = dict(enumerate(prompts))
    for _ in range(tokens):
        for i, logits_ in run.step(rows).items():
            outputs[i].append(int(logits_[-1].argmax()))
        rows = {i: [said[-1]] for i, said in enumerate(outputs)}
    return outputs


@pytest.mark.gpu
@pytest.mark.nightly
def test_small_groups_give_the_same_logits(kind, tmp_path):
    case = Case.save(tmp_path, "qwen3", {"head_dim": 32}, "q0f32")
    prompt = prompts_of(case.model)[1]
    got = Runner(case.compiled(f"{kind}:64"), device=kind).step({0: prompt})[0]
    case.close(got, logits(case.model, prompt))


@pytest.mark.gpu
@pytest.mark.by_day("vulkan")
@pytest.mark.nightly
def test_the_default_scheme(kind, tmp_path):
    """4-bit weights; scales, norms, keys, values and activations are halves.

    PoCL's device cannot compute with halves.
    """
    case = Case.save(tmp_path, "llama", {}, "q4f16_1")
    prompt, library = prompts_of(case.model)[1], case.compiled(kind)
    got = Runner(library, device=kind).step({0: prompt})[0]
    case.close(got, logits(case.model, prompt))
    first = int(got[-1].argmax())
    assert greedy(library, [prompt], 1) == [[first]]
    needs = {"opencl": [], "vulkan": ["storageBuffer16BitAccess"]}
    assert read_manifest(library).target["device_features"] == needs[kind]


def greedy(folder, prompts, tokens=64, **options):
    """Greedy tokens of the core, all prompts in one batch."""
    with started(folder, **({"max_batch": len(prompts), "context": 128} | options)) as core:
        return cores.greedy(core, prompts, tokens)

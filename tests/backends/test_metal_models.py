"""Models through the core, the Metal plugin and an emulated GPU: the CPU's tokens in float32."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from wherry.compiler import choices
from wherry.compiler.api import Limits, ensure_artifact
from wherry.targets import hosts
from wherry.targets.target import find

from ..support import cores, fake_metal
from ..support.tiny_models import save

pytestmark = pytest.mark.cpu
TOKENS = 12

RUN = """
import gc, json, sys
import tvm_ffi
from tests.support import cores, fake_metal
folder, prompts, loads, tokens = json.loads(sys.argv[1])
fake = fake_metal.opened(sys.argv[2])
cores.open_runtime = lambda kind: None  # it is open
from pathlib import Path
told, live = [], []
for _ in range(loads):
    with cores.started(Path(folder), max_batch=len(prompts), context=64) as core:
        told.append(cores.greedy(core, prompts, tokens))
    gc.collect()
    tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")()  # of the virtual machine's pool
    live.append(fake.objects())
print(json.dumps({"tokens": told, "live": live, "broken": fake.broken(), "events": fake.events()}))
"""


@pytest.fixture
def compiled(monkeypatch):
    """Compiles for a target; "metal" has this machine as its host, whose code runs, too."""
    here = hosts.here()

    def find_target(text, host):
        preset = find(text, host)
        return replace(preset, hosts=(here.name,)).on(here) if text == "metal" else preset

    monkeypatch.setattr(choices, "find_target", find_target)

    def compile_(model, target, quant):
        return ensure_artifact(
            str(model),
            target=target,
            quant=quant,
            kv_dtype="float32",
            limits=Limits(context=64, max_batch=2, prefill_chunk=16),
        )

    return compile_


def on_cpu(folder, prompts):
    with cores.started(folder, max_batch=len(prompts), context=64) as core:
        return cores.greedy(core, prompts, TOKENS)


def on_metal(folder, prompts, loads=1, cache=""):
    """What the classes recorded, and the tokens of each load."""
    words = json.dumps([str(folder), prompts, loads, TOKENS])
    return json.loads(fake_metal.python(RUN, words, str(cache)).splitlines()[-1])


def check(compiled, model, quant, vocabulary, tmp_path, loads=1):
    rng = np.random.default_rng(1)
    prompts = [rng.integers(3, vocabulary, n).tolist() for n in (5, 21)]
    expected = on_cpu(compiled(model, "cpu", quant), prompts)
    recorded = on_metal(compiled(model, "metal", quant), prompts, loads, tmp_path)
    assert [len(tokens) for tokens in expected] == [TOKENS] * 2
    assert recorded["tokens"] == [expected] * loads
    assert recorded["broken"] == []
    assert recorded["live"] == [{"FakeDevice": 1, "FakeQueue": 1}] * loads
    assert "compile with fast math" not in recorded["events"]
    # One of each for a step, and for the functions that pack weights.
    events = recorded["events"]
    assert events["commit"] == events["command buffer"] >= TOKENS
    assert events["compute encoder"] <= events["command buffer"]


@pytest.mark.nightly
def test_the_demo(compiled, tmp_path):
    check(compiled, "demo", "q0f32", 512, tmp_path, loads=2)


MODELS = {"llama": {}, "qwen3": {"head_dim": 32}}


@pytest.mark.nightly
@pytest.mark.parametrize("family", MODELS)
def test_random_models(compiled, tmp_path, family):
    save(tmp_path / "model", family, **MODELS[family])
    check(compiled, tmp_path / "model", "q0f32", 320, tmp_path / "cache")

"""Matrices that are larger than a device binds: several, of some rows each, with the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.gpu.hollow import compile_hollow

from wherry.artifact.manifest import read_manifest
from wherry.compiler import api, choices
from wherry.compiler.api import Limits
from wherry.targets.target import find

from ..support import gpu
from ..support.tiny_models import Runner, compiled, save
from ..support.web import require_core
from ..targets.test_devices import greedy

MOST_BYTES = 4096  # of a matrix of 64 columns in 4 bits: 128 of its 300 rows, or 64 of more


@pytest.fixture
def small_bindings(monkeypatch):
    """Every target binds as little."""

    def find_small(text, host):
        return replace(find(text, host), binding_bytes=MOST_BYTES)

    return lambda: monkeypatch.setattr(choices, "find_target", find_small)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("tied", "target"),
    [
        (True, "cpu"),
        pytest.param(False, "cpu", marks=pytest.mark.nightly),
        pytest.param(True, "vulkan", marks=pytest.mark.nightly),
    ],
)
def test_parts_give_the_same_bits(tmp_path, small_bindings, tied, target):
    if target != "cpu":
        gpu.device(target)
    save(tmp_path / "m", "llama", tie_word_embeddings=tied, vocab_size=300)
    unsplit = compiled(tmp_path / "m", "q4f32_1", target)
    small_bindings()
    limits = Limits(max_batch=256, prefill_chunk=256)
    parts = api.ensure_artifact(
        str(tmp_path / "m"),
        quant="q4f32_1",
        target=target,
        kv_dtype="float32",
        limits=limits,
        out=tmp_path / "parts",
    )
    run = Runner(parts, device=target)
    names = {name for p in run.metadata["params"] for name in p["from"]}
    head = "model.embed_tokens" if tied else "lm_head"
    assert {f"{head}.q_weight[{rows}]" for rows in ("0:128", "128:256", "256:300")} <= names
    tokens = [*range(120, 136), *range(250, 262), 0, 127, 128, 255, 256, 299]
    expected = Runner(unsplit, device=target).step({0: tokens})[0]
    assert np.array_equal(run.step({0: tokens})[0], expected)
    assert greedy(parts, [tokens], 12) == greedy(unsplit, [tokens], 12)


@pytest.mark.browser
@pytest.mark.nightly  # half a minute
def test_a_page_needs_no_more_than_every_browser_grants(tmp_path):
    """152k tokens of 2,048 numbers in 4 bits: 148 MiB, of the 128 that one binding may have."""
    require_core()
    shape = {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 2048,
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
    }
    limits = Limits(context=512, max_batch=1, prefill_chunk=64)
    for tied in (True, False):
        out = tmp_path / f"{tied}"
        compile_hollow(out, shape | {"tie_word_embeddings": tied}, "q4f16_1", "webgpu", limits)
        assert "device_limits" not in read_manifest(out).target

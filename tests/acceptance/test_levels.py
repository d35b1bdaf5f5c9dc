"""One folder for many machines: the library of each level gives the same answer."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from wherry.artifact import manifest as artifact
from wherry.artifact import variants
from wherry.artifact.variants import library_for
from wherry.compiler.api import Limits, ensure_artifact
from wherry.machine.cpu import cpu_features

from ..support import tiny_models

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not {"avx2", "fma"} <= cpu_features(),
        reason=f"needs an x86-64 CPU of level v3, this is {platform.machine()}",
    ),
]
PROMPT = [7, 3, 200, 31]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model = tmp_path_factory.mktemp("tiny")
    tiny_models.save(model, "qwen3")
    limits = Limits(max_batch=4, prefill_chunk=32)

    def compile_for(target):
        return ensure_artifact(str(model), quant="q4f16_1", target=target, limits=limits)

    return compile_for


def greedy(folder):
    """32 tokens, and the bits of their logits."""
    runner, tokens, logits, new = tiny_models.Runner(folder), [], [], PROMPT
    for _ in range(32):
        logits.append(runner.step({0: new})[0][-1])
        tokens.append(int(np.argmax(logits[-1])))
        new = tokens[-1:]
    return tokens, np.stack(logits)


@pytest.mark.nightly
def test_the_library_of_this_machine_answers_as_one_that_was_compiled_for_it(compiled, monkeypatch):
    folder = compiled("cpu:x86-64-v3+")
    manifest = artifact.verify(folder)
    if {"avx512_vnni", "avx512vl"} <= cpu_features():
        assert library_for(manifest) == "model.x86-64-v4+avx512vnni.so"
    expected, bits = greedy(compiled("cpu"))
    assert len(set(expected)) > 4
    tokens, _ = greedy(folder)
    assert tokens == expected
    # Every level that this machine runs, as a lesser machine would choose it.
    tried = set()
    for record in manifest.target["variants"] + [{"features": manifest.target["features"]}]:
        if not set(record["features"]) <= cpu_features():
            continue
        monkeypatch.setattr(variants, "cpu_features", lambda f=record["features"]: frozenset(f))
        tried.add(library_for(manifest))
        tokens, logits = greedy(folder)
        assert tokens == expected
        np.testing.assert_allclose(logits, bits, atol=1e-4)
        monkeypatch.undo()
    assert "model.so" in tried


@pytest.mark.nightly
def test_compiling_for_other_levels_makes_another_folder(compiled):
    folders = {compiled(t) for t in ("cpu:x86-64-v3", "cpu:x86-64-v3+")}
    assert len(folders) == 2
    (single,) = [f for f in folders if len(list(f.glob("model*.so"))) == 1]
    assert "variants" not in artifact.read_manifest(single).target

"""A whole model with `--activations bf16`, whose AMX is emulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.artifact.variants import library_for
from wherry.compiler import choices
from wherry.compiler.api import Limits, ensure_artifact
from wherry.targets.kernels.by_name import KernelsByName
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.target import find

from ..support import amx, tiny_models

pytestmark = [pytest.mark.cpu, pytest.mark.nightly]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Compiles a tiny model; "bf16" adds a library of this machine that calls the emulator."""
    emulator = amx.Emulator(tmp_path)
    here = find("cpu")
    isa = amx.with_matrix_unit(here.kernels.kernels.isa)
    level = replace(
        here,
        name="cpu:emulated",
        activations="bf16",
        fast_math=True,
        kernels=KernelsByName(CpuKernels(isa, activations="bf16")),
    )
    monkeypatch.setattr(choices, "find_target", lambda *_: replace(here, bf16=level))
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    tiny_models.save(tmp_path / "model", "qwen3", head_dim=32)
    limits = Limits(max_batch=96, prefill_chunk=96)  # logits of each row

    def compile_for(activations):
        with amx.emulated():
            folder = ensure_artifact(
                str(tmp_path / "model"), quant="q8f16_1", target="cpu", activations=activations,
                limits=limits,
            )  # fmt: skip
        return folder, emulator

    return compile_for


def test_a_prompt_in_bf16_is_closer_to_floats_than_in_int8(compiled):
    prompt = [int(t) for t in np.random.default_rng(0).integers(3, 320, 90)]
    logits = {}
    for activations in ("float", "int8", "bf16"):
        folder, emulator = compiled(activations)
        runner = tiny_models.Runner(folder)
        logits[activations] = runner.step({0: prompt})[0][-1], runner.step({0: [7]})[0][-1]
        emulator.check()
    manifest = read_manifest(folder)
    assert library_for(manifest) == "model.emulated.so" and manifest.target["fast_math"]
    assert manifest.deployment["activations"] == "bf16"
    for exact, int8, bf16 in zip(*logits.values(), strict=True):
        assert 0 < np.abs(bf16 - exact).max() < np.abs(int8 - exact).max()

"""Kernels as the bundle for GPUs records them, replayed: what is in it, and that it is right."""

from __future__ import annotations

import json

import numpy as np
import pytest
from benchmarks.gpu import bundle, replay

from wherry.targets.toolchains import cuda as cuda_toolchain

from ..support import cuda, recording
from . import test_candidates as candidates
from . import test_tensor_core_attention as attention
from . import test_tensor_core_linear as linear
from .test_cuda import nvcc as nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]


def test_attention_on_tensor_cores(monkeypatch, nvcc, tmp_path, make_batch):
    """Rows in one block, in tiles and in splits: all its launches have numbers that are known."""
    monkeypatch.setattr(cuda_toolchain, "compile_cuda", lambda code, codes, nvcc: code)
    monkeypatch.setattr(recording, "_recorder", recording.Recorder(tmp_path, "cuda:sm_80"))
    kernel = attention.OnTensorCores("heads of 80")
    attention.test_a_row_alone(kernel, make_batch)
    attention.test_a_prompt_in_any_pieces(kernel, make_batch)
    (folder,) = tmp_path.iterdir()
    calls = [dict(np.load(path)) for path in sorted(folder.glob("*.npz"))]
    assert [(len(call["in0"]), len(call["in2"]) - 1) for call in calls] == [(1, 1), (68, 3)]
    monkeypatch.setattr(replay, "_open_runtime", lambda device: None)
    with cuda.loaded_by_emulator():
        result = replay.kernel(folder, "cuda")
    assert result == {"ok": True, "worst": 0.0, "wrong": []}
    assert "test" in json.loads((folder / "kernel.json").read_text())


def test_sums_as_bits_may_differ_a_little(monkeypatch, nvcc, tmp_path):
    """What a row of candidates holds of inexact floats, and only that."""
    monkeypatch.setattr(cuda_toolchain, "compile_cuda", lambda code, codes, nvcc: code)
    monkeypatch.setattr(recording, "_recorder", recording.Recorder(tmp_path, "cuda:sm_90"))
    count = 64
    kernel = candidates.Kernel(recording.recorded(cuda.build), 5003, count)
    x = np.random.default_rng(1).standard_normal((2, 5003)).astype("float32")
    x[1, 0] = np.nan  # and so its sums
    kernel(x, [1, 0.5])
    (folder,) = tmp_path.iterdir()
    (path,) = folder.glob("*.npz")
    calls = dict(np.load(path))
    monkeypatch.setattr(replay, "_open_runtime", lambda device: None)

    def worst(column: int, factor: float) -> float:
        """Replay with a word of the result, as a float32, multiplied."""
        changed = calls["out2"].copy()
        changed[0, column : column + 1].view("float32")[:] *= np.float32(factor)
        np.savez(path, **(calls | {"out2": changed}))
        result = replay.kernel(folder, "cuda")
        assert result["ok"] == (result["worst"] <= replay.BITS_NEAR)
        return result["worst"]

    assert replay.BITS_NEAR == pytest.approx(2 * candidates.RELATIVE_ERROR)
    total, logit = 2 * count + 1, count
    with cuda.loaded_by_emulator():
        assert worst(total, 1) == 0
        assert 0 < worst(total, 1 + 1e-5) < replay.BITS_NEAR
        assert worst(total + 1, 1 + 1e-4) == pytest.approx(1e-4, rel=0.01)
        assert worst(logit, 1 + 1e-5) == np.inf


def test_the_bundle_has_it():
    names, chosen = zip(*bundle.KERNEL_RUNS, strict=True)
    assert all("tensor_core_attention" in name for name in names)
    assert any("nightly" in options for options in chosen)


def test_the_bundle_has_wide_tiles(monkeypatch, nvcc, tmp_path):
    """As those of sm_90 are, with more rows than a tile has."""
    by_night = [names for names, options in bundle.KERNEL_RUNS if "wide" in options[-1]]
    assert by_night and all("tensor_core_linear" in names for names in by_night)
    monkeypatch.setattr(cuda_toolchain, "compile_cuda", lambda code, codes, nvcc: code)
    monkeypatch.setattr(recording, "_recorder", recording.Recorder(tmp_path, "cuda:sm_90"))
    linear.test_fused_linear(recording.recorded(cuda.build), "floats, gate", many="wide")
    (folder,) = tmp_path.iterdir()
    assert [len(np.load(path)["in0"]) for path in sorted(folder.glob("*.npz"))] == [140, 1]
    assert b", 2, 16, 8, 3, 1, true, true, " in (folder / "kernel.so").read_bytes()
    monkeypatch.setattr(replay, "_open_runtime", lambda device: None)
    with cuda.loaded_by_emulator():
        result = replay.kernel(folder, "cuda")
    assert result == {"ok": True, "worst": 0.0, "wrong": []}

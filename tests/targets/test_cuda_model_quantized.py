"""As `test_cuda_model`: quantized checkpoints whose bits stay as they are."""

from __future__ import annotations

import pytest
from benchmarks.gpu.record import record_model

from ..compiler.quantized.formats import CASES
from ..compiler.quantized.test_end_to_end import quantized
from ..compiler.quantized.test_mxfp4 import published_model
from .test_cuda import nvcc as nvcc
from .test_cuda_model import run, source_of

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # half a minute each


@pytest.mark.parametrize("name", ["gpt-oss", "fp8-blocks", "compressed-fp8", "modelopt-nvfp4"])
def test_a_model(monkeypatch, nvcc, tmp_path, name):
    folder, place = tmp_path / "checkpoint", tmp_path / "recorded"
    if name == "gpt-oss":  # experts that are as wide as tensor cores have them
        model, scheme = published_model(folder, intermediate_size=64), "MXFP4"
    else:
        model, scheme = quantized(folder, CASES[name]), CASES[name].scheme
    source = source_of(
        monkeypatch, tmp_path, lambda: record_model(place, folder, model, "cuda:sm_80", None)
    )
    assert f"wherry::{scheme},".encode() in source
    run(place)

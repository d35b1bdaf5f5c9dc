"""As `test_cuda_model`: experts as wide as tensor cores have them or not, and weights of 8 bits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..models.families import CASES
from . import test_cuda_model
from .test_cuda import nvcc as nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # half a minute each
WIDTHS = {"qwen3_moe": "moe_intermediate_size", "gpt_oss": "intermediate_size"}
ALIGNED = {
    f"{name}-aligned": replace(CASES[name], config={**CASES[name].config, field: 64})
    for name, field in WIDTHS.items()
}


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("llama", "q8f16_1"),
        ("qwen3_moe-aligned", "q4f16_1"),
        ("qwen3_moe", "q4f16_1"),
        ("gpt_oss-aligned", "q8f16_1"),
        ("afmoe", "q4f16_1"),
        ("kimi_linear", "q4f16_1"),
    ],
)
def test_a_model(monkeypatch, nvcc, tmp_path, name, quant):
    for aligned in ALIGNED.items():
        monkeypatch.setitem(CASES, *aligned)
    test_cuda_model.test_a_model(monkeypatch, nvcc, tmp_path, name, quant)

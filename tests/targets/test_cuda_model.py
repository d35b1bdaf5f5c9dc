"""Tiny models compiled for CUDA, whole: their kernels run by the emulator, through the engine."""

from __future__ import annotations

import pytest
from benchmarks.gpu import replay
from benchmarks.gpu.record import record_models

from wherry.targets.toolchains import cuda as cuda_toolchain

from ..support import cuda
from .test_cuda import nvcc as nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # half a minute each


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("llama-tied", "q4f16_1"),
        ("llama", "q0f16"),
        ("qwen3", "q4f16_1"),
        ("llama-mha-biases", "q4f16_1"),
        ("llama-heads-of-64", "q4f16_1"),
        ("gemma2-heads-of-64", "q0f16"),
    ],
)
def test_a_model(monkeypatch, nvcc, tmp_path, name, quant):
    """Logarithms as transformers has them, and the same bits in a batch; as with a GPU."""
    source = source_of(
        monkeypatch, tmp_path, lambda: record_models(tmp_path, "cuda:sm_80", [name], quant)
    )
    assert (b" wherry::attend_rows<" in source) == ("heads-of-64" in name)
    run(tmp_path / f"{name}-{quant}")


def source_of(monkeypatch, tmp_path, record):
    """What the kernels of the model that `record` compiles are written as."""
    sources = []

    def kept(code, codes, nvcc):
        sources.append(code)
        return code

    monkeypatch.setattr(cuda_toolchain, "compile_cuda", kept)
    monkeypatch.setenv("WHERRY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("wherry.runtime.load.loading.open_runtime", lambda kind: None)
    record()
    (source,) = sources
    return source


def run(folder):
    """Run a recorded model by the emulator."""
    cuda.device()
    with cuda.loaded_by_emulator():
        result = replay.model(folder, "cuda")
    assert result["ok"], result

"""What a bundle brings of llama.cpp, and the weights that it is measured with."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from benchmarks.gpu import llama
from benchmarks.gpu.bundle import _linears
from benchmarks.gpu.llama_sources import DEVICES, FILES, FOLDERS, TOOLS, copy


def test_other_devices_and_tools_stay_behind(tmp_path):
    given, kept = tmp_path / "given", tmp_path / "kept"
    folders = [*FOLDERS, *(f"tools/{name}" for name in (*TOOLS, "server"))]
    folders += [f"ggml/src/{name}" for name in (*DEVICES, "ggml-metal")]
    folders += [f"ggml/src/ggml-cpu/{name}" for name in ("arch/arm", "arch/x86", "spacemit")]
    for folder in folders:
        (given / folder).mkdir(parents=True, exist_ok=True)
        (given / folder / "a.cpp").touch()
    for name in (*FILES, "ggml/src/ggml.c"):
        (given / name).touch()
    copy(given, kept)
    assert {p.name for p in (kept / "ggml" / "src").iterdir()} == {*DEVICES, "ggml.c"}
    of_cpu = kept / "ggml" / "src" / "ggml-cpu"
    assert {p.name for p in of_cpu.iterdir()} == {"a.cpp", "arch"}
    assert {p.name for p in (of_cpu / "arch").iterdir()} == {"x86"}
    assert {p.name for p in (kept / "tools").iterdir()} == {*TOOLS, "CMakeLists.txt"}
    assert "add_subdirectory(llama-bench)" in (kept / "tools" / "CMakeLists.txt").read_text()


def test_random_weights_are_as_large_as_real_ones():
    bf16 = llama.random_bytes("bf16").view(np.uint16).astype(np.uint32) << 16
    assert bf16.view(np.float32).std() == pytest.approx(0.02, rel=0.01)
    blocks = llama.random_bytes("q4_0").view(llama.Q4_0)
    assert llama.Q4_0.itemsize == 18  # bytes of 32 weights
    numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=1)
    weights = (numbers.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]
    assert 0.01 < weights.std() < 0.02


def test_cublas_of_pypi_is_used(tmp_path, monkeypatch):
    home = tmp_path / "nvidia" / "cu13"
    for name in ("include/cublas_v2.h", "lib/libcublas.so.13", "lib/libcublasLt.so.13"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    folder = llama.cublas()
    assert folder["CUDA_cublas_LIBRARY"] == str(home / "lib" / "libcublas.so.13")
    assert folder["CUDA_cublasLt_LIBRARY"] == str(home / "lib" / "libcublasLt.so.13")
    assert folder["CMAKE_CUDA_FLAGS"] == f"-I{home / 'include'}"


def test_numbers_that_a_token_of_a_prompt_is_multiplied_by():
    """Of 8.03 billion, less the embedding and the head of 128,256 x 4,096 each."""
    assert _linears("llama-3.1-8b") == 32 * (4096 * (4096 * 2 + 1024 * 2) + 3 * 4096 * 14336)

"""CUDA libraries: machine code of every GPU asked for, made without a GPU or a driver."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.errors import ToolchainError, UsageError
from wherry.machine.cuda_driver import SHARED_MEMORY
from wherry.targets.cuda import USUAL
from wherry.targets.target import find
from wherry.targets.toolchains.cuda import compile_cuda, find_nvcc, known_codes
from wherry.targets.toolchains.toolchain import require
from wherry.targets.variants import CUDA_CODES

from ..support.device_binaries import CUBIN, EM_CUDA, PTX, Elf, fatbin_entries, packed
from ..support.tiny_models import save

TWO = "cuda:sm_80+sm_90"
REQUIRED = "WHERRY_REQUIRE_CUDA"  # set in CI, which installs the extra `cuda`


@pytest.fixture(scope="module")
def nvcc():
    program = find_nvcc(USUAL)
    if program is None:
        message = "no nvcc; pip install '.[cuda]'"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    return program


@pytest.fixture(scope="module")
def artifact(nvcc, tmp_path_factory):
    """(compiled folder, folder of the dump) of a tiny model for two GPUs."""
    folder = tmp_path_factory.mktemp("cuda")
    save(folder / "model", "llama")
    compiled = ensure_artifact(
        str(folder / "model"), target=TWO, out=folder / "out", dump=folder / "dump"
    )
    return compiled, folder / "dump"


@pytest.mark.cpu
def test_a_library_holds_machine_code_and_ptx(artifact):
    folder, _ = artifact
    (module,) = packed(folder / "model.so", "cuda")
    assert module.format == "fatbin" and len(module.kernels) > 10
    entries = fatbin_entries(module.code)
    assert [code for kind, code, _ in entries if kind == CUBIN] == ["sm_80", "sm_90"]
    assert [code for kind, code, _ in entries if kind == PTX] == ["sm_80"]
    for kind, _, content in entries:
        if kind == CUBIN:
            elf = Elf.read(content)
            assert elf.machine == EM_CUDA
            assert elf.symbols.issuperset(module.kernels)


def test_the_manifest_says_for_which_gpus(artifact):
    target = read_manifest(artifact[0]).target
    assert (target["name"], target["kind"]) == (TWO, "cuda")
    assert target["codes"] == ["sm_80", "sm_90"]
    # Of heads that tensor cores have none for, and 4 bits: no block asks for more than is usual.
    assert 0 < target["device_limits"][SHARED_MEMORY] < 48 << 10


def test_the_dump_has_cuda_c(artifact):
    text = (artifact[1] / "8_generate.cu").read_text()
    assert "__global__ void __launch_bounds__(" in text and "attention_kernel" in text


def test_each_gpu_gets_its_own_code(nvcc):
    source = b'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }'

    def manifest_for(target):
        entries = fatbin_entries(compile_cuda(source, find(target).codes, nvcc))
        return sorted((kind, code) for kind, code, _ in entries)

    assert manifest_for("cuda:sm_90") == [(PTX, "sm_90"), (CUBIN, "sm_90")]
    assert manifest_for("cuda") == [(PTX, "sm_80"), *sorted((CUBIN, code) for code in USUAL)]


def test_what_nvcc_says_is_heard(nvcc):
    with pytest.raises(ToolchainError, match=r"cannot compile the kernels:\n.*error"):
        compile_cuda(b"not CUDA", ("sm_90",), nvcc)


def test_the_presets():
    many = find("cuda:sm_90+sm_80")
    assert many.name == "cuda:sm_80+sm_90" and many.codes == ("sm_80", "sm_90")
    assert many.device["arch"] == "sm_80" and many.device["thread_warp_size"] == 32
    assert find("cuda").codes == USUAL
    for code in CUDA_CODES:
        assert find(f"cuda:{code}").codes == (code,)
    with pytest.raises(UsageError, match=r"(?s)sm_90 +H100.*Type: --target cuda:sm_90$"):
        find("cuda:sm_9O")


def fake_nvcc(folder: Path, codes: str) -> Path:
    path = folder / "bin" / "nvcc"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho {codes}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_nvcc_that_knows_the_gpus_is_used(monkeypatch, tmp_path):
    old = fake_nvcc(tmp_path / "old", "sm_80 sm_90")
    assert known_codes(old) == {"sm_80", "sm_90"}
    assert known_codes(tmp_path / "none") == frozenset()
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "old"))
    assert find_nvcc(("sm_90",)) == old
    preset = find("cuda")
    with pytest.raises(ToolchainError, match=r"cuda needs.*\n.*nvcc. Type: pip install 'wherry"):
        require(preset.name, preset.toolchain.requirements())

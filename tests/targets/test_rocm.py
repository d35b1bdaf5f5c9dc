"""ROCm libraries: machine code that AMD's run time loads, made without a GPU or a driver."""

from __future__ import annotations

import os
import re
import shutil

import pytest
import tvm
from tvm.script import tirx as T
from tvm.target import Target

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import ensure_artifact
from wherry.errors import ToolchainError, UsageError
from wherry.targets import rocm
from wherry.targets.kernels import AttentionSpec, LinearSpec, RMSNormSpec
from wherry.targets.target import find
from wherry.targets.toolchains import rocm as rocm_toolchain
from wherry.targets.toolchains.rocm import find_libraries, find_linker, link
from wherry.targets.toolchains.toolchain import require

from ..support.device_binaries import EM_AMDGPU, Elf, packed
from ..support.tiny_models import save

REQUIRED = "WHERRY_REQUIRE_ROCM"  # set in CI, which installs lld and rocm-device-libs
MACHINES = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx1100": 0x41, "gfx1201": 0x4E}  # of e_flags
MULTIPLY = {  # what GEMMs are multiplied by
    "gfx90a": "v_mfma_f32_16x16x16f16",
    "gfx942": "v_mfma_f32_16x16x16_f16",
    "gfx1100": "v_wmma_f32_16x16x16_f16",
    "gfx1201": "v_wmma_f32_16x16x16_f16",
}


@pytest.fixture(scope="module")
def tools():
    if find_linker() is None or find_libraries() is None:
        message = "no ld.lld or ROCm libraries; apt-get install lld rocm-device-libs"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="module")
def artifact(tools, tmp_path_factory):
    """(compiled folder, folder of the dump, what stderr got) of a tiny model."""
    folder = tmp_path_factory.mktemp("rocm")
    save(folder / "model", "qwen3", head_dim=32)
    said, kept = folder / "stderr", os.dup(2)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            compiled = ensure_artifact(
                str(folder / "model"),
                target="rocm:gfx1100",
                out=folder / "out",
                dump=folder / "dump",
            )
        finally:
            os.dup2(kept, 2)
    return compiled, folder / "dump", said.read_text()


def check(elf, code, kernels):
    assert (elf.machine, elf.flags & 0xFF, elf.abi_version) == (EM_AMDGPU, MACHINES[code], 2)
    assert elf.symbols.issuperset(f"{name}.kd" for name in kernels)


def barriers_that_wait(assembly):
    """How many there are; what was written to shared memory has arrived before each."""
    count, pending = 0, False
    for line in assembly.splitlines():
        word = line.split()[0] if line.split() else ""
        if word.startswith(("ds_write", "ds_store")):
            pending = True
        elif word.startswith("s_wait") and re.search("lgkmcnt|dscnt", line):
            pending = False
        elif word in ("s_barrier", "s_barrier_signal"):
            assert not pending, f"barrier {count} does not wait"
            count += 1
    return count


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_library_holds_every_kernel(artifact):
    folder, _, said = artifact
    (module,) = packed(folder / "model.so", "hip")
    assert module.format == "hsaco" and len(module.kernels) > 10
    check(Elf.read(module.code), "gfx1100", module.kernels)
    target = read_manifest(folder).target
    assert (target["name"], target["codes"]) == ("rocm:gfx1100", ["gfx1100"])
    assert target["device_features"] == [] and "Warning" not in said


@pytest.mark.nightly
def test_the_dump_has_assembly(artifact):
    text = (artifact[1] / "8_generate.s").read_text()
    assert 'amdgcn_target "amdgcn-amd-amdhsa' in text and "attention_kernel" in text


@pytest.mark.cpu
@pytest.mark.parametrize("code", MACHINES)
@pytest.mark.by_day("gfx942", "gfx1201")
def test_kernels_of_each_gpu(code, tools, tmp_path):
    preset = find(f"rocm:{code}")
    attention = AttentionSpec(heads=4, kv_heads=2, head_dim=64, scale=0.1)
    linear = LinearSpec(out_features=64, in_features=64, scheme="q4", scale_dtype="float16")
    kernels = preset.kernels.kernels
    funcs = {
        "attention": kernels.attention(attention),
        "linear": kernels.linear(linear),
        "norm": kernels.rms_norm(RMSNormSpec(dim=96, eps=1e-5)),
    }
    mod = tvm.IRModule({n: f.with_attr("global_symbol", n) for n, f in funcs.items()})
    with preset.toolchain.active():
        artifact = tvm.compile(mod, target=Target(dict(preset.device), host=dict(preset.host)))
        artifact.export_library(str(tmp_path / "kernels.so"))
    (module,) = packed(tmp_path / "kernels.so", "hip")
    assert len(module.kernels) >= 3
    check(Elf.read(module.code), code, module.kernels)
    assembly = str(artifact.mod.imports[0].inspect_source("asm"))
    wave = 32 if ".amdhsa_wavefront_size32 1" in assembly else 64
    assert preset.device["thread_warp_size"] == wave
    assert barriers_that_wait(assembly) > 4
    assert set(re.findall(r"v_(?:wmma|mfma)\w+", assembly)) == {MULTIPLY[code]}
    (tiled,) = (part for part in assembly.split(".end_amdhsa_kernel") if MULTIPLY[code] in part)
    # Registers hold everything, and 16 bytes at a time go to shared memory and come back.
    assert ".amdhsa_private_segment_fixed_size 0\n" in tiled
    assert set(re.findall(r"\bds_\w+", tiled)) <= {
        *("ds_load_b128", "ds_store_b128"),
        *("ds_read_b128", "ds_read2_b64", "ds_write_b128", "ds_write2_b64"),
    }


def test_functions_of_rocm_are_linked(tools):
    """Those that AMD's hardware lacks."""

    @T.prim_func(s_tir=True)
    def main(a: T.handle) -> None:
        A = T.match_buffer(a, (64,), "float32")
        for i in T.thread_binding(64, thread="threadIdx.x"):
            with T.sblock("tanh"):
                A[i] = T.tanh(A[i])

    preset = find("rocm:gfx1201")
    with preset.toolchain.active():
        target = Target(dict(preset.device), host=dict(preset.host))
        artifact = tvm.compile(tvm.IRModule({"main": main}), target=target)
    assert "main_kernel.kd" in str(artifact.mod.imports[0].inspect_source("asm"))


def test_what_is_missing_is_named(monkeypatch, tools, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(rocm_toolchain, "_PLACES", ())
    monkeypatch.setattr(rocm_toolchain, "_LINKERS", ())
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    preset = find("rocm:gfx1100")
    with pytest.raises(ToolchainError, match=r"(?s)apt-get install lld.*install rocm-device-libs"):
        require(preset.name, preset.toolchain.requirements())


def test_the_linker_is_heard(tools):
    with pytest.raises(ToolchainError, match="cannot link the kernels:\n"):
        link(b"no object", find_linker())


def test_the_presets(monkeypatch, tmp_path):
    assert find("rocm:gfx942").device["thread_warp_size"] == 64
    assert find("rocm:gfx1201").device["thread_warp_size"] == 32
    assert find("rocm:gfx1201").fast_math and not find("rocm:gfx1030").fast_math
    with pytest.raises(UsageError, match=r"(?s)gfx942 +MI300.*Type: --target rocm:gfx1101$"):
        find("rocm:gfx110l")
    monkeypatch.setattr(rocm, "TOPOLOGY", tmp_path)
    with pytest.raises(UsageError, match="this machine has none of AMD's"):
        find("rocm")
    for node, version in enumerate((0, 90010, 120001)):
        (tmp_path / str(node)).mkdir()
        text = f"simd_count 1\ngfx_target_version {version}\n"
        (tmp_path / str(node) / "properties").write_text(text)
    assert rocm.gpus_here() == ["gfx90a", "gfx1201"]
    assert find("rocm").name == "rocm:gfx90a"

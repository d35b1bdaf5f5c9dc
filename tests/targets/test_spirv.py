"""SPIR-V for Vulkan: valid, without what WGSL adds, and words to type where naga is missing."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from itertools import pairwise

import pytest
import tvm
from tvm.target import Target

from wherry.compiler.api import Limits, ensure_artifact
from wherry.errors import ToolchainError, WherryError
from wherry.targets import cpu, vulkan
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.spirv import generation as spirv
from wherry.targets.spirv import naga
from wherry.targets.storage_half import with_single_halves
from wherry.targets.toolchains.toolchain import require

from ..support import gpu
from ..support.tiny_models import save
from .test_gpu_sources import kernels

SHARED = "var<workgroup> s : array<f32, 4096>;"
KERNEL = (
    "@group(0) @binding(0) var<storage, read_write> x : array<f32>;\n"
    f"{SHARED}\n@compute @workgroup_size(64, 1, 1)\n"
    "fn k(@builtin(local_invocation_id) t : vec3<u32>) {\n"
    "  s[t.x] = x[t.x]; workgroupBarrier(); x[t.x] = s[63u - t.x];\n}\n"
)


@pytest.fixture
def tools():
    """Naga is here."""
    if not shutil.which("spirv-val"):
        gpu.missing("vulkan", "no spirv-val")
    try:
        require("vulkan", naga.requirements())
    except ToolchainError as e:
        gpu.missing("vulkan", str(e))


def validate(code: bytes, path) -> None:
    path.write_bytes(code)
    done = subprocess.run(
        ["spirv-val", "--target-env", "vulkan1.2", str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("threads", ["64", pytest.param("256", marks=pytest.mark.nightly)])
def test_every_kernel_is_valid(tools, threads, tmp_path):
    limits = GpuLimits(threads_per_block=int(threads), shared_memory_bytes=16384)
    wgsl = {"kind": "webgpu", "max_num_threads": int(threads)}
    sources = {}
    for name, func in kernels(GpuKernels(limits, vulkan.preset(threads).device)).items():
        module = tvm.IRModule({name: with_single_halves(func).with_attr("global_symbol", name)})
        built = tvm.compile(module, target=Target(wgsl, host=dict(cpu.host())))
        part = built.mod.imports[0]
        sources |= spirv.kernels_of(str(part.inspect_source("wgsl")))
        assert set(json.loads(part.inspect_source("func_info"))) <= set(sources)
    for name, code in naga.compile_wgsl(sources).items():
        validate(spirv.finished(name, code), tmp_path / f"{name}.spv")
        shared, _, x, y, z = spirv.demands(sources[name])
        assert shared <= 16384 and x * y * z <= int(threads)
    assert sum("enable f16;" in source for source in sources.values()) > 4


def test_shared_memory_is_not_zeroed(tools, tmp_path):
    code = naga.compile_wgsl({"k": KERNEL})["k"]
    lean = spirv.without_zeroing(code)
    assert len(lean) == len(code) - 3 * 4  # one store of three words
    validate(lean, tmp_path / "k.spv")
    assert spirv.without_zeroing(lean) == lean
    assert spirv.demands(KERNEL) == (16384, 0, 64, 1, 1)


def test_nagas_words_are_in_the_error(tools):
    with pytest.raises(WherryError, match=r"bad: .*no definition in scope"):
        naga.compile_wgsl({"bad": KERNEL.replace("63u", "nothing"), "k": KERNEL})


def test_a_missing_or_changed_package_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.setenv("WHERRY_TOOLS", str(tmp_path))
    monkeypatch.setattr(naga.shutil, "which", lambda name: "/bin/node" if name == "node" else None)
    words = f"npm install --prefix {tmp_path} naga-wasm@{naga.VERSION}"
    with pytest.raises(ToolchainError, match=words):
        require("vulkan", naga.requirements())
    folder = tmp_path / "node_modules" / "naga-wasm" / "dist" / "wasm"
    folder.mkdir(parents=True)
    for name in naga.FILES:
        (folder / name).write_text("another")
    with pytest.raises(ToolchainError, match=f"{words} .*another version, or damaged"):
        require("vulkan", naga.requirements())


def test_numbers_that_are_not_of_32_bits_are_refused():
    call = {"arg_types": ["handle", "int64"], "launch_param_tags": []}
    with pytest.raises(WherryError, match="int64"):
        spirv.pack({"k": call}, {"k": KERNEL}, {"k": b""})


HALF_KERNEL = "enable f16;\n" + KERNEL.replace("array<f32>", "array<f16>").replace(
    "s[t.x] = x[t.x]; workgroupBarrier(); x[t.x] = s[63u - t.x];", "BODY"
)
CAPABILITIES = {
    "Float16": 9,
    "StorageBuffer16BitAccess": 4433,
    "16 bits of uniforms": 4434,
    "16 bits between stages": 4436,
}


def capabilities(code):
    words = struct.unpack(f"<{len(code) // 4}I", code)
    return {name for name, n in CAPABILITIES.items() if (2 << 16 | 17, n) in pairwise(words)}


def test_halves_that_are_only_stored_ask_for_no_more(tools, tmp_path):
    """As the validator knows it, too: not even a vector may be put together of halves."""
    bodies = {
        "stored": "x[t.x] = f16(f32(x[t.x]) * 3.0f);",
        "added": "x[t.x] = x[t.x] + x[0u];",
        "compared": "if (x[t.x] > x[0u]) { x[t.x] = x[1u]; }",
        "joined": "x[t.x] = f16(vec4<f32>(vec4<f16>(x[0u], x[1u], x[2u], x[3u])).y);",
    }
    compiled = naga.compile_wgsl({n: HALF_KERNEL.replace("BODY", b) for n, b in bodies.items()})
    for name, code in compiled.items():
        assert "Float16" in capabilities(code)  # what naga asks for
        path = tmp_path / f"{name}.spv"
        if name == "stored":
            lean = spirv.finished(name, code)
            assert capabilities(lean) == {"StorageBuffer16BitAccess"}
            validate(lean, path)
            continue
        with pytest.raises(WherryError, match=f"Kernel {name} computes with float16"):
            spirv.finished(name, code)
        validate(code, path)
        words = struct.pack("<2I", 2 << 16 | 17, CAPABILITIES["Float16"])
        with pytest.raises(AssertionError):
            validate(code.replace(words, b""), path)


@pytest.mark.gpu
@pytest.mark.nightly
def test_the_dump_has_what_naga_read(tools, tmp_path):
    gpu.device("vulkan")  # its plugin makes the module
    save(tmp_path / "model", "llama", num_hidden_layers=1)
    limits = Limits(max_batch=8, prefill_chunk=64)
    dump = tmp_path / "dump"
    ensure_artifact(str(tmp_path / "model"), target="vulkan", limits=limits, dump=dump)
    assert "@compute @workgroup_size(" in (dump / "8_generate.wgsl").read_text()


def test_products_and_sums_are_rounded_apart(tools, tmp_path):
    """Each has the decoration, and the module stays valid."""
    body = "x[t.x] = x[t.x] * 3.0f + fma(x[t.x], 2.0f, 1.0f) - x[0u];"
    source = KERNEL.replace("s[t.x] = x[t.x]; workgroupBarrier(); x[t.x] = s[63u - t.x];", body)
    (code,) = naga.compile_wgsl({"k": source}).values()
    exact = spirv.without_contraction(code)
    validate(exact, tmp_path / "k.spv")
    decorations = [exact[i + 8 : i + 12] for i in range(0, len(exact), 4) if exact[i : i + 4] == OP]
    assert decorations.count(NO_CONTRACTION) == 3  # product, sum, difference
    assert len(exact) == len(code) + 3 * 12


OP, NO_CONTRACTION = struct.pack("<I", 3 << 16 | 71), struct.pack("<I", 42)

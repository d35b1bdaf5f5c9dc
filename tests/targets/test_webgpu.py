"""Models for browsers: every kernel passes naga's validator and keeps to WebGPU's limits.

Their numbers are tested where WGSL runs: on Vulkan devices, by way of SPIR-V, and in browsers.
"""

from __future__ import annotations

import json

import pytest
import tvm_ffi

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import Limits, ensure_artifact
from wherry.errors import WherryError
from wherry.targets import webgpu
from wherry.targets.spirv import naga
from wherry.targets.spirv.generation import demands, kernels_of

from ..support import gpu
from ..support.tiny_models import save
from ..support.web import require_core

pytestmark = pytest.mark.cpu
# Model, scheme: whether it needs the feature shader-f16.
CASES = {
    ("llama", "q4f16_1"): True,
    ("llama", "q0f32"): False,
    ("qwen3", "q4f32_1"): False,
    ("qwen3", "q0f16"): True,
}
LARGE = {"head_dim": 128, "hidden_size": 256, "num_hidden_layers": 1}  # heads as in real models


@pytest.fixture(scope="module", autouse=True)
def tools():
    """naga and the core for pages, or a skip."""
    require_core()
    if missing := [tool for tool in naga.requirements() if tool.installed is None]:
        gpu.missing("vulkan", f"no {missing[0].name} ({missing[0].fix})")


@pytest.fixture
def generated():
    """The modules that TVM generates for WebGPU, as they come."""
    name, modules = "target.build.webgpu", []
    original = tvm_ffi.get_global_func(name)

    def seen(mod, target):
        modules.append(original(mod, target))
        return modules[-1]

    tvm_ffi.register_global_func(name, seen, override=True)
    yield modules
    tvm_ffi.register_global_func(name, original, override=True)


@pytest.mark.parametrize(
    ("model", "scheme"),
    [
        pytest.param(*case, marks=() if case == ("qwen3", "q4f32_1") else pytest.mark.nightly)
        for case in CASES
    ],
)
def test_kernels_are_valid_and_within_limits(model, scheme, tmp_path, generated):
    save(tmp_path, model, **LARGE)
    limits = Limits(max_batch=8, prefill_chunk=64)
    folder = ensure_artifact(str(tmp_path), target="webgpu", quant=scheme, limits=limits)
    (module,) = generated
    calls = json.loads(str(module.inspect_source("func_info")))
    sources = kernels_of(str(module.inspect_source("wgsl")))
    assert calls.keys() == sources.keys() and len(calls) > 8
    spirv = naga.compile_wgsl(sources)  # parses and validates
    assert all(code[:4] == b"\x03\x02\x23\x07" for code in spirv.values())
    bound = {name: call["arg_types"].count("handle") for name, call in calls.items()}
    assert max(bound.values()) <= webgpu.LIMITS.storage_buffers, bound
    for name, source in sources.items():
        assert source.count("var<storage") <= bound[name]
        shared, _, *threads = demands(source)
        assert shared <= webgpu.LIMITS.shared_memory_bytes, name
        assert threads[0] * threads[1] * threads[2] <= webgpu.LIMITS.threads_per_block, name
    assert any(demands(source)[1] for source in sources.values()) == CASES[model, scheme]
    needs = ["shader-f16"] if CASES[model, scheme] else []
    assert read_manifest(folder).target["device_features"] == needs


def test_what_is_not_valid_is_refused():
    wgsl = "@compute @workgroup_size(1) fn main() { let x : i32 = 1.5f; }"
    with pytest.raises(WherryError, match="naga refuses"):
        naga.compile_wgsl({"main": wgsl})

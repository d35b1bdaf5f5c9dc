"""What --debug-dump shows of a device's code."""

from __future__ import annotations

import pytest
import tvm
from tvm.target import Target

from wherry.compiler.library.device_sources import device_sources
from wherry.targets.kernels import RMSNormSpec
from wherry.targets.target import find


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("kind", "suffix", "word"),
    [
        ("opencl", "cl", "__kernel"),
        ("metal", "metal", "kernel void"),
        ("webgpu", "wgsl", "@compute"),
    ],
)
def test_sources_are_listed(kind, suffix, word):
    preset = find(kind)
    norm = preset.kernels.kernels.rms_norm(RMSNormSpec(dim=64, eps=1e-5))
    mod = tvm.IRModule({"norm": norm.with_attr("global_symbol", "norm")})
    compiled = tvm.compile(mod, target=Target(dict(preset.device), host=dict(find("opencl").host)))
    sources = device_sources(compiled.mod)
    assert list(sources) == [suffix]
    assert word in sources[suffix] and "norm_kernel" in sources[suffix]


def test_a_cpu_has_none():
    compiled = tvm.compile(tvm.IRModule(), target=Target(dict(find("cpu").device)))
    assert device_sources(compiled.mod) == {}

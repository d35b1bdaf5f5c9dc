"""A model whose kernels do not fit a device's blocks is refused, with what to type."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tvm

from wherry.compiler.library.device_limits import Demand, demands, require_limits
from wherry.errors import UsageError
from wherry.ops import FusedLinearSpec, PagedAttentionSpec
from wherry.targets.kernels import RMSNormSpec
from wherry.targets.target import find

ATTENTION = PagedAttentionSpec(
    heads=32,
    kv_heads=8,
    head_dim=128,
    rotary_dim=128,
    inv_freq=(1.0,) * 64,
    scale=0.1,
    kv_dtype="float16",
    qkv_dtype="float16",
    out_dtype="float16",
)


@pytest.fixture(scope="module")
def mod():
    norm = find("opencl").kernels.kernels.rms_norm(RMSNormSpec(dim=2048, eps=1e-5))
    return tvm.IRModule({"norm": norm.with_attr("global_symbol", "norm")})


def limited(**limits):
    preset = find("opencl:64")
    return replace(preset, device={**preset.device, **limits})


def test_threads_and_memory_of_a_block_are_counted(mod):
    assert list(demands(mod["norm"].body)) == [Demand(256, 1024)]  # a partial sum a thread
    assert require_limits(mod, find("opencl")) == 0  # none asks
    assert require_limits(mod, find("cpu")) == 0


def test_all_that_does_not_fit_is_listed(mod):
    with pytest.raises(UsageError) as refused:
        require_limits(mod, limited(max_shared_memory_per_block=512))
    assert str(refused.value) == (
        "This model's kernels take more than a block of target opencl:64 has:\n"
        "  - norm: 256 threads, not 64\n"
        "  - norm: 1024 bytes of shared memory, not 512\n"
        "Type: --target opencl, whose blocks are larger, or --target cpu"
    )


def test_memory_that_a_launch_asks_for_has_a_limit_of_its_own():
    cuda = find("cuda:sm_90")
    kernel = cuda.kernels.kernels.paged_attention(ATTENTION)
    mod = tvm.IRModule({"attend": kernel.compute.with_attr("global_symbol", "attend")})
    most = max(d.shared_bytes for d in demands(mod["attend"].body))
    assert int(cuda.device["max_shared_memory_per_block"]) < most <= cuda.optin_shared_bytes
    assert require_limits(mod, cuda) == most
    with pytest.raises(UsageError, match=f"attend: {most} bytes of shared memory, not {most - 1}"):
        require_limits(mod, replace(cuda, optin_shared_bytes=most - 1))


def test_kernels_of_a_small_target_fit_it():
    small = find("opencl:64")
    norm = small.kernels.kernels.rms_norm(RMSNormSpec(dim=2048, eps=1e-5))
    require_limits(tvm.IRModule({"norm": norm.with_attr("global_symbol", "norm")}), small)


def test_a_target_asks_for_what_all_its_gpus_have():
    """Prompts with float16 weights take more where all GPUs that are meant have it."""
    spec = FusedLinearSpec(out_features=4096, in_features=4096, scheme="f16")

    def most_of(name):
        target = find(name)
        compute = target.kernels.kernels.fused_linear(spec).compute
        mod = tvm.IRModule({"linear": compute.with_attr("global_symbol", "linear")})
        return require_limits(mod, target)

    usual = most_of("cuda")
    assert usual < 48 << 10
    for name in ("sm_86", "sm_89", "sm_120", "sm_80+sm_90+sm_120"):
        assert most_of(f"cuda:{name}") == usual
    assert most_of("cuda:sm_90+sm_100") == 176 << 10
    assert most_of("cuda:sm_90") == 1024 + 6 * ((16 << 10) + (16 << 10) + 16)  # warpgroups' stages
    assert most_of("cuda:sm_80") == most_of("cuda:sm_80+sm_90") == 160 << 10

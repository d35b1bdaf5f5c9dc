"""As `test_tensor_core_code`: linears of 8 bits, of floats of few bits, and of experts."""

from __future__ import annotations

import re

import pytest

from wherry.ops.blocks import FORMATS
from wherry.targets.kernels import ExpertLinearSpec, FusedLinearSpec
from wherry.targets.kernels.gpu import tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import packing

from .test_cuda import nvcc as nvcc
from .test_tensor_core_code import REGISTERS, assembled

pytestmark = [pytest.mark.cpu, pytest.mark.nightly]
CODES = ("sm_80", "sm_90", "sm_100", "sm_120")
# What reads weights for up to eight rows: two blocks share a multiprocessor.
ONE_TILE = re.compile(
    r"gemv(?:_stream)?<\S+ \d+, \d+, \d+, 1, |expert_row<|gemv_slots<.*>, \d+, 1, "
)


def check(func, nvcc, folder):
    """Nothing is spilled, and blocks fit; how many kernels are for up to eight rows, of all GPUs.

    What is not of tensor cores is not looked at.
    """
    given, tiles = assembled(func, nvcc, CODES, folder), 0
    text = (folder / "kernels.cu").read_text()
    for g in given:
        call = text.rpartition(f" {g.kernel}(")[2].partition("\n}")[0]
        if "wherry::" not in call:
            continue
        one_tile = ONE_TILE.search(call) is not None
        tiles += one_tile
        assert not g.stack and not g.spilled, g
        assert g.registers * g.threads * (2 if one_tile else 1) <= REGISTERS, g
        print(g.code, g.kernel, g.registers, "registers,", g.threads, "threads")
    return tiles


def scales(scheme):
    if scheme in FORMATS:
        own = FORMATS[scheme]
        return {"scheme": scheme, "scale_dtype": own.floats, "group": own.group}
    return {"scheme": scheme, "scale_dtype": None if scheme == "f16" else "float16"}


def linear_of(n, k, scheme="q8", **more):
    return FusedLinearSpec(out_features=n, in_features=k, **scales(scheme), **more)


BEHIND = {"norm_eps": 1e-5, "y_dtype": "float16"}
LINEARS = {  # Llama-3.1-8B's
    "qkv": linear_of(6144, 4096, **BEHIND),
    "gate_up": linear_of(28672, 4096, gated=True, **BEHIND),
    "down": linear_of(4096, 14336, residual=True, x_dtype="float16"),
    "qkv of FP8": linear_of(6144, 4096, "fp8_row", **BEHIND),
    "gate_up of FP8 in blocks": linear_of(28672, 4096, "fp8_g128", gated=True, **BEHIND),
    "gate_up of MXFP8": linear_of(28672, 4096, "mxfp8", gated=True, **BEHIND),
    "down of NVFP4": linear_of(4096, 14336, "nvfp4", residual=True, x_dtype="float16"),
    "gate_up of NVFP4": linear_of(28672, 4096, "nvfp4", gated=True, **BEHIND),
    "gate_up of Q2_K": linear_of(28672, 4096, "q2_k", gated=True, **BEHIND),
    "down of Q3_K": linear_of(4096, 14336, "q3_k", residual=True, x_dtype="float16"),
    "gate_up of IQ4_XS": linear_of(28672, 4096, "iq4_xs", gated=True, **BEHIND),
    "qkv of IQ1_M": linear_of(6144, 4096, "iq1_m", **BEHIND),
}


@pytest.mark.parametrize("name", LINEARS)
def test_8_bits(nvcc, tmp_path, name):
    assert check(tensor_cores.fused_linear(LINEARS[name]).compute, nvcc, tmp_path)


def experts_of(experts, top_k, n, k, scheme, **more):
    shape = {"experts": experts, "top_k": top_k, "out_features": n, "in_features": k}
    return ExpertLinearSpec(**shape, **scales(scheme), **more)


GATE, SUM = {"y_dtype": "float16"}, {"combined": True, "residual": True, "x_dtype": "float16"}
EXPERTS = {
    "Qwen3-30B-A3B's gate_up": experts_of(128, 8, 1536, 2048, "q4", gate="silu", **GATE),
    "Qwen3-30B-A3B's down": experts_of(128, 8, 2048, 768, "q4", **SUM),
    "Mixtral's gate_up": experts_of(8, 2, 28672, 4096, "q4", gate="silu", **GATE),
    "Mixtral's down": experts_of(8, 2, 4096, 14336, "q4", **SUM),
    "gpt-oss's gate_up": experts_of(32, 4, 5760, 2880, "q4", gate="clamped", bias=True, **GATE),
    "gpt-oss's down": experts_of(32, 4, 2880, 2880, "q8", bias=True, **SUM),
    "gpt-oss's gate_up as it is": experts_of(
        32, 4, 5760, 2880, "mxfp4", gate="clamped", bias=True, **GATE
    ),
    "gpt-oss's down as it is": experts_of(32, 4, 2880, 2880, "mxfp4", bias=True, **SUM),
    "Mixtral's down of Q3_K": experts_of(8, 2, 4096, 14336, "q3_k", **SUM),
    "Mixtral's down of IQ4_XS": experts_of(8, 2, 4096, 14336, "iq4_xs", **SUM),
    "Mixtral's gate_up of Q2_K": experts_of(8, 2, 28672, 4096, "q2_k", gate="silu", **GATE),
    "DeepSeek-V3's down": experts_of(256, 8, 7168, 2048, "fp8_g128", **SUM),
    "gate_up of 8 bits": experts_of(128, 8, 1536, 2048, "q8", gate="silu"),
    "gate_up of floats": experts_of(128, 8, 1536, 2048, "f16", gate="silu"),
    "down of floats": experts_of(128, 8, 2048, 768, "f16", **SUM),
    "a latent's values": experts_of(128, 128, 128, 512, "q4", routed=False),
}


@pytest.mark.parametrize("name", EXPERTS)
def test_experts(nvcc, tmp_path, name):
    compute = tensor_cores.expert_linear(EXPERTS[name]).compute
    assert check(compute, nvcc, tmp_path) == 2 * len(CODES)


@pytest.mark.parametrize(
    "name",
    [name for name in LINEARS if name.startswith("gate_up of ")],
)
def test_warpgroups(nvcc, tmp_path, name):
    compute = tensor_cores.fused_linear(LINEARS[name], 227 << 10, warpgroups=True).compute
    given = assembled(compute, nvcc, ("sm_90",), tmp_path)
    assert not [g for g in given if "wherry::" in g.kernel and (g.stack or g.spilled)]
    assert [g for g in given if g.threads == 384 and not g.spilled]


@pytest.mark.parametrize("scheme", ["q8", "mxfp4", "fp8_g128"])
def test_packing(nvcc, tmp_path, scheme):
    spec = linear_of(6144, 4096, scheme).linear()
    given = assembled(packing.pack(spec, experts=8), nvcc, ("sm_80",), tmp_path)
    assert not [g for g in given if g.stack or g.spilled]

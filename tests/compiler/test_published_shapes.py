"""Layers of the sizes that people run compile for GPUs: tiny ones take other kernels."""

from __future__ import annotations

import pytest
from benchmarks.gpu.hollow import compile_hollow
from benchmarks.shapes import SHAPES

from wherry.artifact.manifest import read_manifest
from wherry.compiler.api import Limits
from wherry.machine.cuda_driver import SHARED_MEMORY

from ..targets.test_cuda import nvcc as nvcc

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # ten seconds each


@pytest.mark.parametrize("quant", ["q4f16_1", "q0f16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_layer_for_cuda(nvcc, tmp_path, shape, quant):
    out = tmp_path / shape
    layers = SHAPES[shape].get("full_attention_interval", 1)  # one of each kind
    compile_hollow(
        out,
        SHAPES[shape] | {"num_hidden_layers": layers},
        quant,
        "cuda:sm_90",
        Limits(context=2048, max_batch=8, prefill_chunk=512),
    )
    target = read_manifest(out).target
    assert target["codes"] == ["sm_90"]
    # Attention asks for memory by the size of its heads, long prompts of floats for most of it.
    shared_bytes = target["device_limits"][SHARED_MEMORY]
    warpgroups = 1024 + 6 * (2 * (16 << 10) + 16)  # six stages of two tiles and a barrier
    assert (shared_bytes == warpgroups) == (quant == "q0f16") and shared_bytes <= 227 << 10

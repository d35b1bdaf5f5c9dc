"""How many kernels a decode step of a mixture of experts launches, and what these ask for."""

from __future__ import annotations

import pytest
from tvm import ir, relax

from wherry.compiler.library.build import Deployment
from wherry.compiler.library.export import export
from wherry.models.arch import RopeConfig
from wherry.models.families import qwen3_moe
from wherry.passes.pipelines import PipelineInputs, phases
from wherry.quant.scheme import find as find_scheme
from wherry.targets import webgpu
from wherry.targets.target import find

from .test_gpu_launches import DECODE, calls, total
from .test_gpu_sources import demands

pytestmark = pytest.mark.cpu
LAYERS = 3
# A layer: qkv, attention, the output's linear, a norm, router, choice, gate and up, down.
BROWSER, NATIVE = 7, 8


def lowered(preset):
    """The module before the link phase."""
    cfg = qwen3_moe.Qwen3MoeConfig(
        hidden_size=1024,
        intermediate_size=96,
        moe_intermediate_size=512,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=64,
        vocab_size=100,
        rope=RopeConfig(),
        num_experts=64,
        num_experts_per_tok=8,
        tie_word_embeddings=True,
    )
    arch, scheme = qwen3_moe.ARCH, find_scheme("q4f16_1")
    program = export(arch, cfg, scheme, dtype="float32", kv_dtype="float32")
    bounds = program.bounds(Deployment(context=512).bounds())
    mod = program.mod
    for phase, passes in phases(
        PipelineInputs(
            quantization=program.quantization,
            cache=program.cache,
            kernels=preset.kernels,
            bounds=bounds,
            stored=program.stored,
        )
    ):
        if phase != "link":
            mod = ir.transform.Sequential(list(passes))(mod)
    return relax.transform.RewriteDataflowReshape()(mod)  # the first of the link phase: views


@pytest.mark.nightly
def test_a_token_takes_few_launches():
    mod = lowered(find("webgpu"))
    assert total(mod, DECODE) == BROWSER * LAYERS + 4
    assert BROWSER * 16 + 4 <= 120  # a model of 16 layers is within a browser's budget
    kernels = {hash(func): func for func, _ in calls(mod)}.values()
    launches = [part for func in kernels for part in demands(func)]
    assert max(buffers for buffers, _ in launches) <= webgpu.LIMITS.storage_buffers
    assert max(shared for _, shared in launches) <= webgpu.LIMITS.shared_memory_bytes


def test_a_prompt_sorts_its_rows_and_adds_up_its_slots():
    """A mixture of experts launches two more kernels a layer: a sort, and the sum of each row."""
    mod = lowered(find("opencl"))
    assert total(mod, DECODE) == NATIVE * LAYERS + 4
    few, many = (total(mod, DECODE | {"n": n}) for n in (32, 33))  # 256 slots are few
    assert many - few == 2 * LAYERS

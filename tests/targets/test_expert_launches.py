"""How many kernels a decode step of a mixture of experts launches, and what these ask for."""

from __future__ import annotations

import pytest
from tvm import ir, relax

from wherry.compiler.build import Deployment
from wherry.compiler.export import export
from wherry.models import olmoe
from wherry.models.arch import RopeConfig
from wherry.passes.pipelines import PipelineInputs, phases
from wherry.quant.scheme import find as find_scheme
from wherry.targets import webgpu
from wherry.targets.target import find

from .test_gpu_launches import DECODE, calls, total
from .test_gpu_sources import demands

pytestmark = pytest.mark.cpu
LAYERS = 16  # as OLMoE 1B-7B has


def lowered(preset):
    """The module before the link phase."""
    cfg = olmoe.OlmoeConfig(
        hidden_size=2048,
        intermediate_size=1024,
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        vocab_size=100,
        rope=RopeConfig(),
        num_experts=64,
        num_experts_per_tok=8,
    )
    program = export(
        olmoe.ARCH, cfg, find_scheme("q4f16_1"), dtype="float32", kv_dtype="float32"
    )
    bounds = program.bounds(Deployment(context=512).bounds())
    mod = program.mod
    for phase, passes in phases(
        PipelineInputs(kernels=preset.kernels, bounds=bounds, stored=program.stored)
    ):
        if phase != "link":
            mod = ir.transform.Sequential(list(passes))(mod)
    return relax.transform.RewriteDataflowReshape()(mod)


def test_launches_of_a_token():
    mod = lowered(find("webgpu"))
    from collections import Counter
    from .test_gpu_launches import grids
    print(Counter((str(len(grids(f,t,DECODE))), tuple(str(x.shape) for x in t)) for f,t in calls(mod)))
    print(total(mod, DECODE))
    assert 0

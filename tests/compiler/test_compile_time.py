"""How long large models compile: CPU time, of all threads and of the linker."""

from __future__ import annotations

import os

import pytest

from wherry.compiler.library.build import Deployment, build_library
from wherry.compiler.library.export import export
from wherry.models.arch import RopeConfig
from wherry.models.families import qwen3_moe
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import find as find_target

pytestmark = [pytest.mark.nightly, pytest.mark.cpu]
MOST = 60.0  # seconds


def cpu_seconds():
    """That this process and those that it waited for have had."""
    return sum(os.times()[:4])


def test_forty_eight_layers_of_experts_compile_within_a_minute(tmp_path):
    """The shapes of Qwen3-30B-A3B."""
    config = qwen3_moe.Qwen3MoeConfig(
        hidden_size=2048,
        intermediate_size=6144,
        moe_intermediate_size=768,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=4,
        head_dim=128,
        vocab_size=151936,
        max_position_embeddings=40960,
        rope=RopeConfig(theta=1e6),
        num_experts=128,
        num_experts_per_tok=8,
        norm_topk_prob=True,
    )
    target, before = find_target("cpu"), cpu_seconds()
    program = export(
        qwen3_moe.ARCH,
        config,
        find_scheme("q4f16_1"),
        dtype=target.dtype,
        kv_dtype=target.kv_dtype,
        entries=("forward", "embed"),
    )
    out = tmp_path / "model.so"
    build_library(
        program,
        target,
        Deployment(context=40960),
        out,
    )
    assert out.stat().st_size > 100_000
    assert cpu_seconds() - before < MOST

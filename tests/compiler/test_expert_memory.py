"""A step's planned memory counts the tensors between the experts' linears."""

from __future__ import annotations

import pytest

from wherry.compiler.library.build import Deployment, build_library
from wherry.compiler.library.export import export
from wherry.models.arch import RopeConfig
from wherry.models.families import qwen3_moe
from wherry.quant.scheme import find as find_scheme
from wherry.targets.target import find as find_target

pytestmark = pytest.mark.cpu
ROWS, F, HIDDEN = 512, 256, 64


def workspace(target, top_k):
    """Bytes of a step."""
    cfg = qwen3_moe.Qwen3MoeConfig(
        hidden_size=HIDDEN,
        intermediate_size=96,
        moe_intermediate_size=F,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=100,
        rope=RopeConfig(),
        num_experts=8,
        num_experts_per_tok=top_k,
        tie_word_embeddings=True,
    )
    arch, scheme = qwen3_moe.ARCH, find_scheme("q4f16_1")
    program = export(arch, cfg, scheme, dtype="float32", kv_dtype="float32")
    deployment = Deployment(context=1024, prefill_chunk=ROWS)
    built = build_library(program, find_target(target), deployment, None)
    return built.workspace


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        ("cpu", F),  # what lies between the two linears of the slots
        ("opencl", F + HIDDEN),  # and what they give, before it is added up
    ],
)
def test_memory_is_planned_for_all_rows_to_have_all_their_experts(target, columns):
    one, four = (workspace(target, top_k) for top_k in (1, 4))
    assert four - one >= 3 * ROWS * columns * 4

"""Inverse frequencies against transformers, over random parameters."""

import random
from dataclasses import replace

import numpy as np
import pytest
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from wherry.models.layers.rope import inv_freq, read_rope


def random_parameters(kind: str, rng: random.Random) -> dict:
    maybe = lambda **kw: {k: v for k, v in kw.items() if rng.random() < 0.5}  # noqa: E731
    given = {"rope_type": kind, "rope_theta": rng.choice([1e4, 5e5, 1e6, 123456.0])}
    if kind != "default":
        given["factor"] = rng.uniform(1.0, 40.0)
    original = rng.choice([512, 4096, 8192])
    if kind == "llama3":
        given |= {"low_freq_factor": rng.uniform(0.5, 2), "high_freq_factor": rng.uniform(3, 8)}
        given |= maybe(original_max_position_embeddings=original)
    if kind == "yarn":
        given |= {"original_max_position_embeddings": original}
        given |= maybe(
            attention_factor=rng.uniform(0.5, 2),
            beta_fast=rng.uniform(16, 64),
            beta_slow=rng.uniform(0.5, 4),
            mscale=rng.uniform(0.5, 1.5),
            mscale_all_dim=rng.uniform(0.5, 1.5),
            truncate=rng.choice([True, False]),
        )
    if kind != "default" and rng.random() < 0.4:
        given["partial_rotary_factor"] = rng.choice([0.25, 0.5, 0.75])
    return given


@pytest.mark.parametrize("kind", ["default", "linear", "dynamic", "llama3", "yarn", "proportional"])
@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_transformers(kind, seed):
    rng = random.Random(f"{kind} {seed}")
    given = random_parameters(kind, rng)
    head_dim, longest = rng.choice([32, 64, 96, 128]), rng.choice([2048, 16384])
    hf = transformers.LlamaConfig(
        hidden_size=4 * head_dim,
        num_attention_heads=4,
        head_dim=head_dim,
        max_position_embeddings=longest,
        rope_parameters=dict(given),
    )
    if kind == "default":
        want, scale = LlamaRotaryEmbedding.compute_default_rope_parameters(hf)
    else:
        want, scale = ROPE_INIT_FUNCTIONS[kind](hf)
    problems: list[str] = []
    rope = read_rope({"rope_parameters": given, "max_position_embeddings": longest}, problems)
    assert problems == []
    frequencies = inv_freq(rope, rope.rotary_dim(head_dim), longest)
    assert frequencies.inv_freq.dtype == np.float32
    np.testing.assert_allclose(frequencies.inv_freq, want.numpy(), rtol=1e-6, atol=1e-9)
    assert frequencies.attention_factor == pytest.approx(scale, abs=1e-6)
    assert frequencies.max_context == (longest if kind == "dynamic" else None)


@pytest.mark.parametrize("given", [{}, {"factor": 3.0}, {"attention_factor": 1.2}])
def test_longrope_agrees_with_transformers(given):
    """Up to the original length; `factor` is the ratio of lengths where it is not given."""
    given = given | {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "short_factor": [1.0, 1.25, 1.5, 3.0],
        "long_factor": [1.0, 2.0, 8.0, 30.0],
        "original_max_position_embeddings": 1024,
    }
    lengths = {"max_position_embeddings": 8192, "original_max_position_embeddings": 1024}
    hf = transformers.Phi3Config(
        hidden_size=64, num_attention_heads=4, rope_parameters=dict(given), **lengths
    )
    want, scale = ROPE_INIT_FUNCTIONS["longrope"](hf)
    problems: list[str] = []
    rope = read_rope({"rope_parameters": given, **lengths}, problems)
    assert problems == []
    frequencies = inv_freq(rope, rope.rotary_dim(16), 8192)
    np.testing.assert_allclose(frequencies.inv_freq, want.numpy(), rtol=1e-6, atol=1e-9)
    assert frequencies.attention_factor == pytest.approx(scale, abs=1e-6)
    assert frequencies.max_context == 1024
    want, scale = ROPE_INIT_FUNCTIONS["longrope"](hf, seq_len=1025)
    frequencies = inv_freq(replace(rope, long=True), rope.rotary_dim(16), 8192)
    np.testing.assert_allclose(frequencies.inv_freq, want.numpy(), rtol=1e-6, atol=1e-9)
    assert frequencies.attention_factor == pytest.approx(scale, abs=1e-6)
    assert frequencies.max_context == 8192

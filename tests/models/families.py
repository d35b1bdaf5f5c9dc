"""Tiny configurations of every family, which turn on each of its features.

A new architecture, or a new field of a configuration, is a row of CASES. The longest prompts of the
tests have 70 tokens: windows are shorter, and so are the lengths that scaled RoPE begins with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration: what `tiny_models.save` is called with."""

    model_type: str
    config: dict[str, Any] = field(default_factory=dict)
    nightly: bool = False  # not in the default set of tests


CASES = {
    "llama": Case("llama"),
    "llama-tied": Case("llama", {"tie_word_embeddings": True}),
    "llama-mha-biases": Case(
        "llama", {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True}
    ),
    "llama-odd-sizes": Case(
        "llama",
        {
            "hidden_size": 48,
            "intermediate_size": 84,
            "head_dim": 24,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "vocab_size": 307,
        },
    ),
    "llama-linear": Case("llama", {"rope_parameters": LINEAR}, nightly=True),
    "llama-dynamic": Case("llama", {"rope_parameters": DYNAMIC}, nightly=True),
    "llama-llama3": Case("llama", {"rope_parameters": LLAMA3}),
    "llama-yarn": Case("llama", {"rope_parameters": YARN}, nightly=True),
    "qwen2": Case("qwen2", nightly=True),
    "qwen3": Case("qwen3", {"head_dim": 32}),
    "qwen3-tied-yarn": Case(
        "qwen3", {"head_dim": 16, "tie_word_embeddings": True, "rope_parameters": YARN}
    ),
    "mistral": Case("mistral", {"sliding_window": None}, nightly=True),
    "arcee": Case("arcee", {"attention_bias": True, "mlp_bias": True}),
    "smollm3": Case("smollm3", {"no_rope_layer_interval": 2, "attention_bias": True}),
    "granite": Case(
        "granite",
        {
            "embedding_multiplier": 12.0,
            "attention_multiplier": 0.3,
            "residual_multiplier": 0.22,
            "logits_scaling": 0.5,
        },
    ),
    "olmo2": Case("olmo2", {"attention_bias": True}),
    "seed_oss": Case(
        "seed_oss", {"head_dim": 16, "attention_out_bias": True, "mlp_bias": True}, nightly=True
    ),
}
PARAMETERS = [
    pytest.param(name, marks=pytest.mark.nightly if case.nightly else ())
    for name, case in CASES.items()
]

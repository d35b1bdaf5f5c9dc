"""A tiny configuration, and values that many share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
WINDOWED = "sliding_attention"
BOTH = [WINDOWED, "full_attention"]


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration: what `tiny_models.save` is called with."""

    model_type: str
    config: dict[str, Any] = field(default_factory=dict)
    nightly: bool = False  # not in the default set of tests

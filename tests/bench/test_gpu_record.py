"""The prompts that models are recorded with."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.gpu.record import LENGTH, steady_prompt

from wherry.quant.scheme import find

from ..models.families import CASES
from ..support.tiny_models import round_weights, save


@pytest.mark.parametrize(("name", "first"), [("llama", True), ("afmoe", False)])
def test_no_router_hesitates(tmp_path, name, first):
    """In the first prompt a token of AFMoE's has two experts whose scores are 6e-5 apart."""
    model = save(tmp_path, CASES[name].model_type, **CASES[name].config)
    round_weights(model, find("q4f16_1"))
    prompt, logprobs = steady_prompt(model, 3e-2)
    usual = np.random.default_rng(4).integers(0, model.config.vocab_size, LENGTH)
    assert np.array_equal(prompt, usual) == first
    assert logprobs.shape == (LENGTH - 1,) and (logprobs < 0).all()

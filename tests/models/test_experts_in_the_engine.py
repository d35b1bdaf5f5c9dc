"""Mixtures of experts in the core: tokens of several requests at once."""

from __future__ import annotations

import pytest
import torch

from ..support.tiny_models import compiled, save
from ..targets.test_devices import greedy
from .families import CASES

TOKENS = 32


@pytest.mark.cpu
@pytest.mark.parametrize(
    "name", ["qwen3_moe", pytest.param("deepseek_v3", marks=pytest.mark.nightly)]
)
def test_tokens_are_those_of_transformers(tmp_path, name):
    case = CASES[name]
    model = save(tmp_path / "model", case.model_type, **case.config)
    prompts = [[5, 9, 33, 7, 250], list(range(40, 63)), [8]]
    expected = []
    for prompt in prompts:
        ids = torch.tensor([prompt])
        output = model.generate(ids, max_new_tokens=TOKENS, do_sample=False, eos_token_id=None)
        expected.append(output[0, len(prompt) :].tolist())
    assert greedy(compiled(tmp_path / "model"), prompts, TOKENS) == expected

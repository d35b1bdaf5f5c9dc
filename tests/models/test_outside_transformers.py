"""Families that transformers has not, against those that compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.tiny_models import Runner, compiled
from .outside import OUTSIDE, save
from .test_against_transformers import close

CHUNKS = ((0, 9), (9, 10), (10, 11), (11, 50), (50, 70))  # tokens


@pytest.mark.cpu
@pytest.mark.parametrize(
    "name",
    [
        name if name == "baichuan-alibi" else pytest.param(name, marks=pytest.mark.nightly)
        for name in OUTSIDE
    ],
)
def test_prompts_chunks_and_decoding(tmp_path, name):
    logits = save(tmp_path, OUTSIDE[name])
    rng = np.random.default_rng(3)
    prompts = [rng.integers(0, 320, n).tolist() for n in (70, 37)]
    folder = compiled(tmp_path)
    close(Runner(folder).step({0: prompts[0]})[0], logits(prompts[0]))
    run = Runner(folder)
    steps = [run.step({0: prompts[0][a:b], 1: prompts[1][a:b] or [1]}) for a, b in CHUNKS]
    close(np.concatenate([step[0] for step in steps]), logits(prompts[0]))
    close(np.concatenate([step[1] for step in steps])[:37], logits(prompts[1]))

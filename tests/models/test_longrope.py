"""LongRoPE beyond its original length."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wherry.errors import UsageError

from ..support.tiny_models import Runner, compiled, save
from .families import CASES
from .test_against_transformers import close

ORIGINAL, LONGEST = 128, 256  # tokens


@pytest.mark.cpu
@pytest.mark.nightly
def test_a_longer_context_has_the_long_factors(tmp_path):
    case = CASES["phi3-longrope"]
    model = save(tmp_path, case.model_type, **case.config)
    prompt = np.random.default_rng(3).integers(0, model.config.vocab_size, 200).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([prompt])).logits[0].numpy()
    folder = compiled(tmp_path, context=LONGEST)
    run = Runner(folder)
    assert run.metadata["context"] == LONGEST
    assert Runner(compiled(tmp_path)).metadata["context"] == ORIGINAL
    got = [run.step({0: prompt[a:b]})[0] for a, b in ((0, 100), (100, 101), (101, 200))]
    close(np.concatenate(got), expected)
    assert np.array_equal(Runner(folder).step({0: prompt})[0], np.concatenate(got))
    with pytest.raises(UsageError, match="positions end at 256: --context takes 1 to 256"):
        compiled(tmp_path, context=LONGEST + 1)

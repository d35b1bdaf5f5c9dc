"""Models with windows in the core: tokens over several windows."""

from __future__ import annotations

import pytest
import torch

from ..support.tiny_models import compiled, save
from ..targets.test_devices import greedy
from .families import CASES

pytestmark = pytest.mark.cpu
TOKENS = 100  # several windows


@pytest.mark.parametrize(
    "name",
    [
        "mistral-window",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("gemma3", "gemma4")),
    ],
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
    folder = compiled(tmp_path / "model")
    assert greedy(folder, prompts, TOKENS) == expected
    # Layers with a window get fewer pages than the others.
    smaller = {"max_batch": 4, "context": 256, "prefill_chunk": 32}
    assert greedy(folder, prompts, TOKENS, **smaller) == expected
    if name == "mistral-window":  # no layer sees all tokens: pages behind the window go back
        for cache in (True, False):
            options = {"kv_tokens": 64, "prefix_cache": cache}
            assert greedy(folder, prompts[1:2], TOKENS, **options) == expected[1:2]

"""Models with recurrent layers in the core: turns of a chat, preemption, several answers."""

from __future__ import annotations

import pytest
import torch

from wherry.runtime.core.interface import SamplingParams

from ..support.cores import greedy, opened, started
from ..support.tiny_models import compiled, save
from .families import CASES

pytestmark = pytest.mark.cpu
TOKENS = 24
PROMPTS = [[5, 9, 33, 7, 250], list(range(40, 73)), [8]]


OPTIONS = {"max_batch": 4, "context": 256, "prefill_chunk": 32}


def engine(folder, **options):
    return started(folder, **(OPTIONS | options))


@pytest.mark.parametrize(
    "name",
    [
        "qwen3_5_text",
        pytest.param("qwen3_next", marks=pytest.mark.nightly),
        pytest.param("lfm2", marks=pytest.mark.nightly),
        pytest.param("qwen3_5_moe_text", marks=pytest.mark.nightly),
        pytest.param("lfm2_moe", marks=pytest.mark.nightly),
        pytest.param("lfm3", marks=pytest.mark.nightly),
        pytest.param("granitemoehybrid", marks=pytest.mark.nightly),
        pytest.param("zamba2", marks=pytest.mark.nightly),
        pytest.param("mamba2", marks=pytest.mark.nightly),  # without a KV cache
    ],
)
def test_tokens_are_those_of_transformers(tmp_path, name):
    case = CASES[name]
    model = save(tmp_path / "model", case.model_type, **case.config)
    folder = compiled(tmp_path / "model")

    def expected(prompt, tokens=TOKENS):
        output = model.generate(
            torch.tensor([prompt]), max_new_tokens=tokens, do_sample=False, eos_token_id=None
        )
        return output[0, len(prompt) :].tolist()

    references = [expected(prompt) for prompt in PROMPTS]
    with engine(folder) as core:
        assert greedy(core, PROMPTS, TOKENS) == references
        # The next turn continues with a snapshot, and has the tokens of a whole computation.
        chat = [*PROMPTS[1], *references[1], 17, 4, 99]
        before = core.stats()
        assert greedy(core, [chat], TOKENS) == [expected(chat)]
        computed = core.stats().prefill_tokens - before.prefill_tokens
        assert 0 < computed < len(chat) - len(PROMPTS[1]) + 16
        # Several answers to one prompt, after a prefix that none of them has computed.
        assert greedy(core, [chat[:-1]] * 3, TOKENS) == [expected(chat[:-1])] * 3
    # Eight pages. A long prompt takes seven, and all at its end; four short ones need twelve.
    # The core starts when all wait, so that they meet however long a step takes.
    short = [list(range(first, first + 15)) for first in (20, 60, 100, 140)]
    prompts = [list(range(150, 250)), *short]
    with opened(folder, **OPTIONS, kv_tokens=128) as core:
        assert greedy(core, prompts, TOKENS, start=True) == [expected(p) for p in prompts]
        # Without a KV cache a sequence takes no more memory as it grows.
        assert (core.stats().preemptions > 0) == (name != "mamba2")
    # Draft tokens from a predicted answer, of which one is wrong. Where they do not pay, as told by
    # the steps' measured times, a step in 48 tries one.
    long = expected(PROMPTS[1], 96)
    with engine(folder, max_drafts=8, cache_dir=str(tmp_path / "prefixes")) as core:
        wrong = (*long[:6], 319, *long[7:])
        core.add(1, PROMPTS[1], SamplingParams(max_tokens=96, temperature=0, prediction=wrong))
        tokens = []
        while len(tokens) < 96:
            tokens += [event.token for event in core.wait_events(120_000)]
        assert tokens == long
        assert core.stats().drafted_tokens > 0
        assert "has a recurrent state" in core.stats().disk_problem

"""Models with recurrent layers in the core: turns of a chat, preemption, several answers."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core
from wherry.runtime.core.native import NativeCore

from ..support.tiny_models import compiled, save
from .families import CASES

pytestmark = pytest.mark.cpu
TOKENS = 24
PROMPTS = [[5, 9, 33, 7, 250], list(range(40, 73)), [8]]


@contextmanager
def engine(folder, **options):
    manifest = read_manifest(folder)
    config = {"max_batch": 4, "context": 256, "prefill_chunk": 32} | options
    core = NativeCore(open_core(), folder / manifest.library, folder, "cpu", {"threads": 2}, config)
    try:
        core.start()
        yield core
    finally:
        core.close()


def answers(core, prompts):
    """Greedy tokens of each prompt, all in one batch."""
    for i, prompt in enumerate(prompts):
        core.add(i, prompt, SamplingParams(max_tokens=TOKENS, temperature=0))
    outputs, left = [[] for _ in prompts], len(prompts)
    while left:
        events = core.wait_events(120_000)
        assert events, "no event for two minutes"
        for event in events:
            assert event.finish in (Finish.RUNNING, Finish.LENGTH), event
            outputs[event.id].append(event.token)
            left -= event.finish != Finish.RUNNING
    return outputs


@pytest.mark.parametrize(
    "name",
    [
        "qwen3_5_text",
        pytest.param("qwen3_next", marks=pytest.mark.nightly),
        pytest.param("lfm2", marks=pytest.mark.nightly),
    ],
)
def test_tokens_are_those_of_transformers(tmp_path, name):
    case = CASES[name]
    model = save(tmp_path / "model", case.model_type, **case.config)
    folder = compiled(tmp_path / "model")

    def expected(prompt):
        told = model.generate(
            torch.tensor([prompt]), max_new_tokens=TOKENS, do_sample=False, eos_token_id=None
        )
        return told[0, len(prompt) :].tolist()

    wanted = [expected(prompt) for prompt in PROMPTS]
    with engine(folder) as core:
        assert answers(core, PROMPTS) == wanted
        # The next turn continues with a snapshot, and has the tokens of a whole computation.
        chat = [*PROMPTS[1], *wanted[1], 17, 4, 99]
        before = core.stats()
        assert answers(core, [chat]) == [expected(chat)]
        computed = core.stats().prefill_tokens - before.prefill_tokens
        assert 0 < computed < len(chat) - len(PROMPTS[1]) + 16
        # Several answers to one prompt, after a prefix that none of them has computed.
        assert answers(core, [chat[:-1]] * 3) == [expected(chat[:-1])] * 3
    # Eight pages, of which four short prompts leave four, and twelve are needed at the end.
    short = [list(range(first, first + 15)) for first in (20, 60, 100, 140)]
    with engine(folder, kv_tokens=128) as core:
        assert answers(core, short) == [expected(prompt) for prompt in short]
        assert core.stats().preemptions > 0

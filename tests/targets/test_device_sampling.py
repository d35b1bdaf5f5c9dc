"""Tokens that the core takes from what a device makes of its logits: those of the logits whole."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from wherry.artifact.manifest import read_manifest
from wherry.runtime.core.interface import Finish, SamplingParams
from wherry.runtime.core.library import open_core, open_runtime
from wherry.runtime.core.native import NativeCore
from wherry.runtime.load.loading import device_of

from ..support.gpu import KINDS, device
from ..support.tiny_models import compiled, save

VOCAB, TOKENS, CANDIDATES = 2000, 64, 128
ROW, FEW = 4 * VOCAB, 4 * (2 * CANDIDATES + 4)  # bytes
# A bias of nothing changes no logit, but only whole rows can be biased.
FULL_ROWS = {5: 0.0}
SETTINGS = {
    "greedy": SamplingParams(temperature=0, top_logprobs=3),
    "top-k": SamplingParams(temperature=0.8, top_k=40, top_p=0.95, seed=7),
    "top-p": SamplingParams(temperature=0.4, top_p=0.7, seed=8, top_logprobs=2),
    "min-p": SamplingParams(temperature=0.6, min_p=0.1, seed=9),
    "plain": SamplingParams(temperature=0.5, seed=10),
}


@pytest.fixture(
    scope="module",
    params=[k if k == "opencl" else pytest.param(k, marks=pytest.mark.nightly) for k in KINDS],
)
def folder(request, tmp_path_factory):
    """A model compiled for a kind of devices that this machine has, with peaked distributions."""
    device(request.param)
    source = tmp_path_factory.mktemp("model")
    model = save(source, "llama", vocab_size=VOCAB)
    head = model.lm_head.weight
    head.data *= 8
    model.save_pretrained(source)
    return compiled(source, target=request.param)


@contextmanager
def core_of(folder, **config):
    manifest = read_manifest(folder)
    where = device_of(manifest)
    open_runtime(where.partition(":")[0])
    config = {"max_batch": 8, "context": 128, **config}
    core = NativeCore(open_core(), folder / manifest.library, folder, where, {"threads": 2}, config)
    try:
        yield core
    finally:
        core.close()


def run(folder, requests, finish=Finish.LENGTH, **config):
    """Run all requests in one batch; return each one's events, and the counters."""
    rng = np.random.default_rng(1)
    with core_of(folder, **config) as core:
        for i, params in enumerate(requests):
            prompt = rng.integers(3, VOCAB, 3 + 9 * (i % 5)).tolist()
            core.add(i, prompt, replace(params, max_tokens=TOKENS))
        core.start()
        tokens, left = [[] for _ in requests], len(requests)
        while left:
            events = core.wait_events(120_000)
            assert events, "no event for two minutes"
            for event in events:
                assert event.finish in (Finish.RUNNING, finish), event
                tokens[event.id].append(event)
                left -= event.finish != Finish.RUNNING
        return tokens, core.stats()


@pytest.mark.gpu
@pytest.mark.nightly
def test_the_tokens_are_those_of_full_rows(folder):
    few, stats = run(folder, SETTINGS.values())
    expected, other = run(folder, [replace(p, bias=FULL_ROWS) for p in SETTINGS.values()])
    for name, a, b in zip(SETTINGS, few, expected, strict=True):
        assert [e.token for e in a] == [e.token for e in b], name
        np.testing.assert_allclose([e.logprob for e in a], [e.logprob for e in b], atol=5e-5)
        for x, y in zip(a, b, strict=True):
            assert [i for i, _ in x.top] == [i for i, _ in y.top]
            np.testing.assert_allclose([p for _, p in x.top], [p for _, p in y.top], atol=5e-5)
    rows = len(SETTINGS) * TOKENS
    assert stats.candidate_rows + stats.whole_rows == rows
    assert stats.candidate_rows > 0.9 * rows
    assert (other.candidate_rows, other.whole_rows) == (0, rows)
    # Each row once, what is read of it at most twice, and rows of prompts' chunks.
    assert stats.readback_bytes < rows * FEW + stats.whole_rows * ROW + stats.steps * FEW
    assert stats.readback_bytes < other.readback_bytes / 3
    assert other.readback_bytes >= rows * ROW


@pytest.mark.gpu
def test_a_greedy_step_reads_a_little(folder):
    tokens, stats = run(folder, [SamplingParams(temperature=0)] * 3)
    assert (stats.candidate_rows, stats.whole_rows) == (3 * TOKENS, 0)
    assert stats.readback_bytes <= (3 * TOKENS + stats.steps) * FEW
    assert len({tuple(e.token for e in events) for events in tokens}) == 3


@pytest.mark.gpu
def test_requests_of_full_rows_are_served_beside(folder):
    """A request that needs its rows costs its neighbours nothing, and they it no token."""
    plain = SamplingParams(temperature=0)
    biased = replace(plain, bias={7: 1.5})
    with_logprobs = SamplingParams(temperature=0, prompt_logprobs=2)
    mixed, stats = run(folder, [plain, biased, with_logprobs])
    alone = [run(folder, [p])[0][0] for p in (plain,)]
    assert [e.token for e in mixed[0]] == [e.token for e in alone[0]]
    assert stats.whole_rows == TOKENS
    assert stats.candidate_rows == 2 * TOKENS
    assert len(mixed[2]) == TOKENS + 3 + 9 * 2 - 1  # the prompt's, too


@pytest.mark.gpu
def test_a_step_is_launched_before_the_last_one_was_read(folder):
    """With tokens that the device takes itself: those of steps one by one, and of whole rows."""
    plain = SamplingParams(temperature=0)
    chained, stats = run(folder, [plain] * 3)
    assert stats.chained_steps > 0.8 * stats.steps
    assert stats.wasted_rows == 0
    other, waited = run(folder, [replace(plain, bias=FULL_ROWS)] * 3)
    assert waited.chained_steps == 0
    for a, b in zip(chained, other, strict=True):
        assert [e.token for e in a] == [e.token for e in b]
    # Drawn with the requests' own numbers.
    _, stats = run(folder, SETTINGS.values())
    assert stats.chained_steps > 0.8 * stats.steps
    assert stats.wasted_rows < 0.05 * len(SETTINGS) * TOKENS
    # Ends that the device does not know of.
    stops = tuple({e.token for events in chained for e in events[20:22]})
    tokens, stats = run(folder, [replace(plain, stop_ids=stops)] * 3, finish=Finish.STOP)
    assert 0 < stats.wasted_rows <= 3
    assert stats.pages_free == stats.pages_total
    for a, b in zip(tokens, chained, strict=True):
        assert [e.token for e in a] == [e.token for e in b][: len(a)]


@pytest.mark.gpu
def test_requests_are_admitted_while_the_device_computes(folder):
    """Those that wait for a place change no token of the others, and have their own."""
    requests = [SamplingParams(temperature=0, user=i) for i in range(12)]
    tokens, stats = run(folder, requests, max_batch=4)
    assert 0 < stats.overlapped_seconds < stats.host_seconds + stats.sample_seconds
    alone, _ = run(folder, requests)
    for a, b in zip(tokens, alone, strict=True):
        assert [e.token for e in a] == [e.token for e in b]


@pytest.mark.cpu
def test_libraries_of_cpus_have_no_such_entry(tmp_path):
    save(tmp_path, "llama", vocab_size=VOCAB)
    library = compiled(tmp_path)
    with core_of(library) as core:
        assert "candidates" not in core.metadata
    _, stats = run(library, [SamplingParams(temperature=0)])
    assert (stats.candidate_rows, stats.whole_rows) == (0, TOKENS)
    assert (stats.readback_bytes, stats.overlapped_seconds) == (0, 0)

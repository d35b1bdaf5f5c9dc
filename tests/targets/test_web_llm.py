"""What WebLLM calls on logits and probabilities, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels.gpu import GpuLimits, web_llm

pytestmark = [pytest.mark.gpu, pytest.mark.nightly]  # a dozen kernels, for one interface
VOCAB = 1000  # neither a power of two nor a multiple of the threads
LEAST = -1e38


@pytest.fixture(scope="module", params=[256, 64])
def limits(request):
    return GpuLimits(threads_per_block=request.param, shared_memory_bytes=16384)


@pytest.fixture
def logits():
    return (4 * np.random.default_rng(0).standard_normal((3, VOCAB))).astype("float32")


def distributions():
    """Rows that differ in how many tokens have weight; the last has one alone, as greedy ones."""
    rng = np.random.default_rng(1)
    rows = rng.random((3, VOCAB)) ** np.array([[1], [8], [60]])
    rows = np.concatenate([rows, np.eye(1, VOCAB, 777)])
    return (rows / rows.sum(1, keepdims=True)).astype("float32")


def test_probabilities(build, limits, logits):
    temperatures = np.array([1, 0.7, 1e-6], "float32")
    run = build(web_llm.softmax(VOCAB, limits))
    result = run(logits[:, None], temperatures, np.empty_like(logits[:, None]))[-1][:, 0]
    exponents = (logits.astype("float64") - logits.max(1, keepdims=True)) / temperatures[:, None]
    expected = np.exp(exponents) / np.exp(exponents).sum(1, keepdims=True)
    assert np.allclose(result, expected, rtol=1e-4, atol=1e-9)
    assert result[2, logits[2].argmax()] == 1


@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.3, 1e-5])
def test_draws(build, limits, top_p):
    run = build(web_llm.sample_top_p(VOCAB, limits))
    p, places = distributions(), np.random.default_rng(2).random(100).astype("float32")
    rows = np.arange(100, dtype="int32") % len(p)
    top_ps = np.full(len(p), top_p, "float32")
    tokens = run(p, places, rows, top_ps, np.empty(100, "int32"))[-1]
    sure = 0
    for row, place, token in zip(rows, places, tokens, strict=True):
        of = p[row].astype("float64")
        order = np.argsort(-of, kind="stable")
        mass = np.cumsum(of[order])
        count = int(np.searchsorted(mass, top_p * mass[-1] * (1 - 1e-6))) + 1
        least = of[order[min(count, VOCAB) - 1]]
        kept = np.where(of >= least, of, 0)
        edges = np.cumsum(kept) / kept.sum()
        if abs(edges - place).min() < 1e-5:
            continue
        sure += 1
        assert token == np.searchsorted(edges, place, side="right")
    assert sure > 60
    assert set(tokens[rows == 3]) == {777}


def test_logits_in_place(build, limits, logits):
    rows, ids = np.array([0, 2, 2], "int32"), np.array([5, 0, 999], "int32")
    values = np.array([3, -4, 0.5], "float32")
    result = build(web_llm.bias(VOCAB, limits))(logits.copy(), rows, ids, values)[0]
    expected = logits.copy()
    expected[rows, ids] += values
    assert np.array_equal(result, expected)

    counts, sequences = np.array([1, 2, 5], "int32"), np.array([2, 1, 0], "int32")
    penalties = np.array([[0.5, 0.25, 1.5], [0, 0, 1], [0.1, 0.2, 1.2]], "float32")
    run = build(web_llm.penalty(VOCAB, limits))
    result = run(logits.copy(), sequences, rows, ids, counts, penalties)[0]
    expected = logits.copy()
    for row, token, count in zip(rows, ids, counts, strict=True):
        presence, frequency, repetition = penalties[row]
        x = expected[sequences[row], token] - presence - count * frequency
        expected[sequences[row], token] = x / repetition if x > 0 else x * repetition
    assert np.allclose(result, expected, rtol=1e-6)


def test_a_mask(build, limits, logits):
    allowed = np.random.default_rng(3).random((3, 32 * -(-VOCAB // 32))) < 0.5
    words = np.packbits(allowed, axis=1, bitorder="little").view("int32")
    rows = np.array([2, 0], "int32")
    result = build(web_llm.bitmask(VOCAB, limits))(logits.copy(), rows, words)[0]
    for row in range(3):
        forbidden = ~allowed[row, :VOCAB] if row in rows else np.zeros(VOCAB, bool)
        assert (result[row, forbidden] < LEAST).all()
        assert np.array_equal(result[row, ~forbidden], logits[row, ~forbidden])

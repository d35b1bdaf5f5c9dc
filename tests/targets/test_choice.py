"""Tokens that a device draws from candidates, against NumPy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops import ChoiceSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.kernels.gpu.candidates import TAIL
from wherry.targets.kernels.gpu.choice import HOW

from .test_gpu_sources import demands

LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)
COUNT, HEAD, VOCAB = 128, 64, 3000


@pytest.fixture(scope="module", params=[256, 64])
def choose(build, request):
    """(packed, how) -> result."""
    limits = GpuLimits(threads_per_block=request.param, shared_memory_bytes=16384)
    run = build(GpuKernels(limits, {}).choice(ChoiceSpec(count=COUNT)).compute)

    def chosen(packed, how):
        result = np.full((len(packed), 2 * COUNT + TAIL + 1), 0xDEADBEEF, "uint32")
        return run(packed, np.array(how, "float32").reshape(-1, HOW), result)[-1]

    return chosen


def packed_of(x, scale, count=COUNT):
    """What `candidates` gives of a row."""
    ids = np.argsort(-x, kind="stable")[:count]
    row = np.zeros(2 * COUNT + TAIL, "uint32")
    row[:count], row[COUNT : COUNT + count] = ids, x[ids].view("uint32")
    distance = x.astype("float64") - x.max()
    sums = [np.exp(distance).sum(), np.exp(distance * scale).sum()]
    row[2 * COUNT] = count
    row[2 * COUNT + 1 : 2 * COUNT + 3] = np.array(sums, "float32").view("uint32")
    row[2 * COUNT + 3] = 1
    return row


def drawn(x, scale, place, top_k, top_p, min_p):
    """The token, and whether nearly another place would give it, too."""
    order = np.argsort(-x, kind="stable")
    weights = np.exp((x[order].astype("float64") - x.max()) * scale)
    cuts = top_k > 0 or top_p < 1 or min_p > 0
    if top_k:
        weights = weights[:top_k]
    if top_p < 1:
        weights = weights[: int(np.searchsorted(np.cumsum(weights), top_p * weights.sum())) + 1]
    if min_p:
        weights = weights[weights >= min_p]
    edges = np.cumsum(weights) / weights.sum()
    rank = int(np.searchsorted(edges, place, side="right"))
    sure = abs(edges - place).min() > 1e-4 and rank < (COUNT if cuts else HEAD)
    return order[min(rank, len(order) - 1)], sure


SETTINGS = [
    (1, 0, 1.0, 0.0),
    (1, 40, 1.0, 0.0),
    (1.4, 0, 0.8, 0.0),
    (0.9, 0, 1.0, 0.05),
    (1.2, 50, 0.7, 0.02),
]


@pytest.mark.gpu
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.by_day("256-opencl-setting1", "64-vulkan", "256-metal")
def test_the_tokens_of_draws(choose, setting):
    rng = np.random.default_rng(1)
    scale, top_k, top_p, min_p = setting
    x = (4 * rng.standard_normal((200, VOCAB))).astype("float32")
    places = rng.random(200).astype("float32")
    packed = np.stack([packed_of(row, scale) for row in x])
    how = [(scale, place, top_k, top_p, min_p) for place in places]
    result = choose(packed, how)
    assert np.array_equal(result[:, :-1], packed)
    compared = 0
    for row, place, got in zip(x, places, result, strict=True):
        token, sure = drawn(row, scale, float(place), top_k, top_p, min_p)
        compared += sure
        assert not sure or got[-1] == token
    assert compared > 100


@pytest.mark.gpu
def test_the_most_likely_and_rows_without_candidates(choose):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, VOCAB)).astype("float32")
    packed = np.stack([packed_of(row, 1) for row in x])
    packed[1, : 2 * COUNT + 1] = 0  # none could be collected
    result = choose(packed, [(1, 0, 1, 1, 0), (1, 0.5, 0, 1, 0), (1, 0.999, 1, 1, 0)])
    assert [*result[:, -1]] == [x[0].argmax(), 0, x[2].argmax()]


@pytest.mark.cpu
def test_limits_of_browsers():
    ((buffers, shared),) = demands(GpuKernels(LIMITS, {}).choice(ChoiceSpec()).compute)
    assert buffers <= 8 and shared <= 16384

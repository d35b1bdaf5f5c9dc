"""What a device makes of rows of logits for sampling, against NumPy: exact but for two sums."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wherry.ops import CandidatesSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.kernels.gpu.candidates import RELATIVE_ERROR, TAIL
from wherry.targets.kernels.gpu.largest import SearchShape

from ..support.recording import FLOAT_BITS
from .test_gpu_sources import demands

LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)
SMALL = GpuLimits(threads_per_block=64, shared_memory_bytes=16384)
NONE = -np.inf


def ranked(x: np.ndarray, count: int) -> np.ndarray:
    """Ids of the largest, of equals the lower id first."""
    return np.lexsort((np.arange(len(x)), -x.astype("float64")))[:count]


def sums(x: np.ndarray, scale: float) -> tuple[float, float]:
    distance = x.astype("float64") - x.max()
    return np.exp(distance).sum(), np.exp(distance * np.float64(np.float32(scale))).sum()


class Kernel:
    def __init__(self, build, vocab, count, limits=LIMITS):
        self.count = count
        spec = CandidatesSpec(vocab=vocab, count=count)
        fused = GpuKernels(limits, {}).candidates(spec)
        (((_, self.scratch), _),) = fused.scratch
        shape = SearchShape.of(spec, limits)
        sums = [shape.bests + 4 * part + i for part in range(shape.parts) for i in (2, 3)]
        bits = json.dumps({"2": [2 * count + 1, 2 * count + 2], "3": sums})
        self.run = build(fused.compute.with_attr(FLOAT_BITS, bits))

    def __call__(self, x, scales):
        m = len(x)
        result = np.full((m, 2 * self.count + TAIL), 0xDEADBEEF, "uint32")
        scratch = np.full((m, self.scratch), 0xDEADBEEF, "uint32")
        return self.run(x, np.array(scales, "float32"), result, scratch)[-2]

    def check(self, x, scales):
        """Of rows that can be sampled from; how many candidates each has."""
        k, per_row = self.count, []
        for row, scale, got in zip(x, scales, self(x, scales), strict=True):
            n = int(got[2 * k])
            ids, values = got[:n], got[k : k + n].view("float32")
            assert np.array_equal(ids, ranked(row, n))
            assert np.array_equal(values, row[ids])
            assert not got[n:k].any() and not got[k + n : 2 * k].any()
            total, scaled = got[2 * k + 1 : 2 * k + 3].view("float32").astype("float64")
            exact = sums(row, scale)
            assert abs(total / exact[0] - 1) < RELATIVE_ERROR
            assert abs(scaled / exact[1] - 1) < RELATIVE_ERROR
            assert got[2 * k + 3] == 1
            per_row.append(n)
        return per_row


# Vocabulary, candidates, limits: one part and many, groups of one and of sixteen, parts that end.
SHAPES = {
    "demo": (512, 128, LIMITS),
    "odd": (5003, 64, LIMITS),
    "small blocks": (9001, 128, SMALL),
    "large": (151_936, 128, LIMITS),
}


@pytest.fixture(scope="module", params=SHAPES)
def kernel(build, request):
    vocab, count, limits = SHAPES[request.param]
    return vocab, Kernel(build, vocab, count, limits)


@pytest.mark.gpu
@pytest.mark.by_day("demo-opencl", "small blocks")
def test_most_likely_tokens_and_sums(kernel):
    vocab, run = kernel
    rng = np.random.default_rng(vocab)
    x = (3 * rng.standard_normal((6, vocab))).astype("float32")
    x[1] += 12 * (rng.random(vocab) < 0.003)  # peaked
    x[2] = np.round(x[2] * 8) / 8  # equals, some at the last rank
    x[3, rng.random(vocab) < 0.3] = NONE
    x[3, :4] = [0.0, -0.0, 1e-41, -1e-41]
    x[4] -= 200  # all far below 0
    x[5] *= 6
    numbers = run.check(x, [1, 2, 0.5, 1, 100, 0.3])
    assert all(n in (0, run.count) for n in numbers) and numbers.count(0) <= 1


@pytest.mark.gpu
@pytest.mark.by_day("demo-vulkan", "small blocks")
def test_a_row_has_the_same_bits_in_any_company(kernel):
    vocab, run = kernel
    x = (4 * np.random.default_rng(1).standard_normal((5, vocab))).astype("float32")
    scales = [1, 0.7, 3, 1, 1.5]
    together = run(x, scales)
    for i in range(5):
        assert np.array_equal(run(x[i : i + 1], scales[i : i + 1])[0], together[i])
    order = [3, 0, 4, 2, 1]
    assert np.array_equal(run(x[order], np.array(scales)[order]), together[order])


@pytest.mark.gpu
@pytest.mark.by_day("odd-opencl", "demo-metal")
def test_rows_that_cannot_be_sampled_from_are_marked(kernel):
    vocab, run = kernel
    x = np.random.default_rng(2).standard_normal((6, vocab)).astype("float32")
    x[0, vocab // 2] = np.nan
    x[1, vocab - 1] = -np.float32(np.nan)
    x[2, 0] = np.inf
    x[3] = NONE
    x[4, 1:] = NONE  # one token is possible: this one can
    got = run(x, [1] * 6)
    assert list(got[:, -1]) == [0, 0, 0, 0, 1, 1]


@pytest.mark.gpu
def test_many_equals_need_the_full_row(build):
    run = Kernel(build, 5003, 64)
    x = np.zeros((3, 5003), "float32")
    x[1, [7, 4000, 12]] = [3, 5, 3]
    x[2] = NONE
    x[2, :40] = 1
    assert run.check(x, [1, 1, 1]) == [0, 0, 0]


@pytest.mark.gpu
@pytest.mark.by_day("demo", "small blocks", "large")
def test_the_largest_stand_anywhere(kernel):
    """In few threads' groups or in few parts, where maxima of many groups bound them badly."""
    vocab, run = kernel
    rng = np.random.default_rng(3)
    x = rng.standard_normal((6, vocab)).astype("float32")
    at = np.arange(vocab)
    x[0] += 20 * (at % 64 < 25)
    x[1] += 20 * (at < 4096)
    x[2] = at / 100
    x[3] = -at / 100
    for row, equals in zip(x[4:], (2 * run.count, 513), strict=True):
        row[:] = -5
        row[rng.permutation(vocab)[: min(equals, vocab)]] = 3
    numbers = run.check(x, [1] * 6)
    assert [numbers[i] for i in (0, 1, 2, 4)] == [run.count] * 4
    assert numbers[5] == (0 if vocab > 513 else run.count)


@pytest.mark.cpu
@pytest.mark.parametrize("vocab", [512, 151_936, 2**18])
def test_limits_of_browsers(vocab):
    kernel = GpuKernels(LIMITS, {}).candidates(CandidatesSpec(vocab=vocab))
    needs = list(demands(kernel.compute))
    assert len(needs) == 2  # launches
    assert max(buffers for buffers, _ in needs) <= 8
    assert max(shared for _, shared in needs) <= 16384


@pytest.mark.cpu
def test_no_kernel_beyond_the_bound_of_its_error():
    assert GpuKernels(LIMITS, {}).candidates(CandidatesSpec(vocab=2**18 + 1)) is None

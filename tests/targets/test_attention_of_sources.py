"""What encoder-decoders ask of attention: biases by distance, and rows with equal positions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from wherry.targets.kernels import AttentionSpec
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from .page_layout import stored
from .test_cpu_attention import reference, values

GPU = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})
# h, g, e, dtype of the cache, scale, reach: in a page, and over blocks
CASES = [
    (8, 8, 64, "float16", 1.0, 128),
    (4, 4, 16, "float32", 1.0, 5),
    (6, 3, 20, "int8", 0.25, 200),
]
SHORT = (20, 1, [38, 0])  # another sequence of the batch


class Attend:
    """A kernel with biases, or without."""

    def __init__(self, kernels, build, case, layout, *, biased=True):
        self.h, self.g, self.e, self.kv_dtype, self.scale, reach = case
        self.layout = layout
        spec = AttentionSpec(
            heads=self.h,
            kv_heads=self.g,
            head_dim=self.e,
            scale=self.scale,
            reach=reach if biased else None,
            kv_dtype=self.kv_dtype,
        )
        rng = np.random.default_rng(1)
        biases = rng.standard_normal((self.h, reach + 1)).astype("float32")
        self.bias = biases if biased else None
        self.kernel = build(kernels.attention(spec))

    def __call__(self, q, batch, pages):
        rows = (batch.positions, batch.sequences, batch.query_indptr)
        more = () if self.bias is None else (self.bias,)
        table, out = (batch.page_indptr, batch.page_ids), np.full(q.shape, np.nan, "float32")
        return self.kernel(q, *rows, *table, *more, self.layout(pages), out)[-1]

    def expected(self, q, batch, pages):
        return reference(q, batch, pages, self.scale, bias=self.bias)

    def inputs(self, rows, pages=40):
        rng = np.random.default_rng(self.e)
        page_values = values(rng, (pages, 2, self.g, 16, self.e), self.kv_dtype)
        return page_values, values(rng, (rows, self.h, self.e)) * np.float32(0.3)


def check_biases(attend, make_batch, rows, tolerance):
    """A whole prompt against NumPy, then parts of it, alone and in company: the same bits."""
    pages, q = attend.inputs(rows)
    table = [int(i) for i in np.random.default_rng(2).permutation(37)]
    prompt = make_batch([(0, rows, table)])
    at_once = attend(q, prompt, pages)
    np.testing.assert_allclose(at_once, attend.expected(q, prompt, pages), atol=tolerance)
    _, (other, *_) = attend.inputs(1)
    for start, stop in pairwise([0, 1, 17, 18, 70, rows - 1, rows]):
        mixed_q = np.concatenate([other[None], q[start:stop], other[None]])
        batch = make_batch([SHORT, (start, stop - start, table), SHORT])
        assert np.array_equal(attend(mixed_q, batch, pages)[1:-1], at_once[start:stop])


def check_sources(attend, make_batch, length, tolerance):
    """Rows of which each attends to its whole source, of `length` and of 7 tokens."""
    pages, q = attend.inputs(40)
    pages[3] = np.array(np.nan).astype(pages.dtype) if attend.kv_dtype != "int8" else pages[3]
    tables = ([*range(4, 5 + length // 16)], [39])

    def batch(rows, other):
        rows_of_both = make_batch([(0, rows, tables[0]), (0, other, tables[1])])
        ends = np.array([length - 1, 6], "int32")
        return replace(rows_of_both, positions=ends[rows_of_both.sequences])

    both = batch(30, 10)
    at_once = attend(q, both, pages)
    np.testing.assert_allclose(at_once, attend.expected(q, both, pages), atol=tolerance)
    for first in (0, 1, 12, 29):  # decode rows, whose number decides on the way of computation
        rows = [first, 35]
        assert np.array_equal(attend(q[rows], batch(1, 1), pages), at_once[rows])
    assert np.array_equal(attend(q[5:], batch(25, 10), pages), at_once[5:])


@pytest.mark.cpu
@pytest.mark.parametrize("case", CASES, ids=str)
class TestCpu:
    @pytest.mark.by_day("(4, 4, 16", "(6, 3, 20")
    def test_biases(self, case, here, make_batch):
        attend = Attend(CpuKernels(here.isa), here.build, case, stored)
        check_biases(attend, make_batch, 300, 5e-6)

    @pytest.mark.by_day("(4, 4, 16", "(6, 3, 20")
    def test_sources(self, case, here, make_batch):
        attend = Attend(CpuKernels(here.isa), here.build, case, stored, biased=False)
        for length in (40, 310):
            check_sources(attend, make_batch, length, 5e-6)


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES[:2], ids=str)
class TestDevices:
    def test_biases(self, case, build, make_batch):
        check_biases(Attend(GPU, build, case, np.copy), make_batch, 150, 5e-6)

    def test_sources(self, case, build, make_batch):
        attend = Attend(GPU, build, case, np.copy, biased=False)
        check_sources(attend, make_batch, 310, 5e-6)

"""Caches of integers: the CPU's kernels against the references that models emit."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops import AttentionSpec, RopeAppendSpec
from wherry.passes.references import paged as paged_reference
from wherry.targets.kernels.cpu import CpuKernels

from .page_layout import INTEGERS, by_token, floats, quantized, steps, stored

pytestmark = pytest.mark.cpu
H, G, E = 4, 2, 32
COMMON = {"heads": H, "kv_heads": G, "head_dim": E, "page_size": 16}
ROPE = {"inv_freq": tuple(1 / 2**i for i in range(E // 2)), "scaling": 1.0, "qk_norm_eps": 1e-6}


@pytest.fixture
def batch(make_batch):
    """A row of one sequence, then a whole page and more of another."""
    return make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])


@pytest.fixture(params=INTEGERS)
def kv_dtype(request):
    return request.param


@pytest.fixture
def pages(kv_dtype):
    return quantized(np.random.default_rng(1).standard_normal((8, 2, G, 16, E)), kv_dtype)


@pytest.mark.by_day("int8")
def test_what_is_appended(here, batch, pages, kv_dtype):
    rng = np.random.default_rng(0)
    spec = RopeAppendSpec(**COMMON, **ROPE, kv_dtype=kv_dtype, rotary_dim=E)
    kernel = here.build(CpuKernels(here.isa).rope_append(spec))
    model = here.build(paged_reference.rope_append(spec))
    qkv = rng.standard_normal((31, H + 2 * G, E)).astype("float32")
    qkv[3, H + G :] = 0  # a value without a largest element
    places = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    inputs = (qkv, *places, *rng.uniform(0.5, 2, (2, E)).astype("float32"))
    out = np.full((31, H, E), np.nan, "float32")
    pages_after, q = kernel(*inputs, stored(pages), out)[-2:]
    expected, expected_q = model(*inputs, pages, out)[-2:]
    np.testing.assert_allclose(q, expected_q, atol=5e-6)
    error = np.abs(floats(by_token(pages_after)) - floats(expected))
    assert (error <= 1.01 * steps(expected)).all()
    assert (error < 0.01 * steps(expected)).mean() > 0.99
    written = floats(by_token(pages_after))[4, 1, :, 3 + 2]  # of row 3, at position 5
    assert np.array_equal(written, np.zeros((G, E)))


@pytest.mark.by_day("int4")
def test_what_is_attended(here, batch, pages, kv_dtype):
    spec = AttentionSpec(**COMMON, kv_dtype=kv_dtype, scale=0.25)
    kernel = here.build(CpuKernels(here.isa).attention(spec))
    model = here.build(paged_reference.attention(spec))
    q = np.random.default_rng(2).standard_normal((31, H, E)).astype("float32")
    places = (batch.positions, batch.sequences, batch.query_indptr, batch.page_indptr)
    out = np.full(q.shape, np.nan, "float32")
    got = kernel(q, *places, batch.page_ids, stored(pages), out)[-1]
    expected = model(q, *places, batch.page_ids, pages, out)[-1]
    np.testing.assert_allclose(got, expected, atol=3e-6)

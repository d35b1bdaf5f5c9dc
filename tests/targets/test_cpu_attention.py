"""Paged attention on CPUs against NumPy, under cut prompts, mixed batches and stale pages."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from wherry.targets.kernels import AttentionSpec
from wherry.targets.kernels.cpu import CpuKernels

from .page_layout import INTEGERS, converted, floats, stored

pytestmark = pytest.mark.cpu

# h, g, e and dtype of the cache: vectors of a head are 8, 16, 16 and 4 wide; one and three heads
# share a key, or two; the first and the last are too narrow for threads.
NARROW, WIDE = (8, 4, 8, "float32"), (4, 2, 128, "float32")
COMMON, ODD = (9, 3, 64, "float16"), (4, 1, 20, "float16")
INT8 = (9, 3, 64, "int8")
ODD_INT8 = pytest.param(4, 1, 20, "int8", marks=pytest.mark.nightly)
INT4, ODD_INT4 = (9, 3, 64, "int4"), (4, 1, 40, "int4")


def reference(q, batch, pages, scale, window=None, softcap=None, slopes=(), bias=None):
    out = np.zeros(q.shape)
    shared = q.shape[1] // pages.shape[2]
    for i, (position, s) in enumerate(zip(batch.positions, batch.sequences, strict=True)):
        ids = batch.page_ids[batch.page_indptr[s] : batch.page_indptr[s + 1]]
        k, v = (
            floats(pages)[ids, which].transpose(1, 0, 2, 3) for which in (0, 1)
        )  # [g, pages, 16, e]
        k, v = (x.reshape(x.shape[0], -1, x.shape[-1])[:, : position + 1] for x in (k, v))
        k, v = (x[:, -(window or 0) :] for x in (k, v))
        for head in range(q.shape[1]):
            score = k[head // shared] @ q[i, head] * scale
            score = softcap * np.tanh(score / softcap) if softcap else score
            if slopes:
                score = score + slopes[head] * np.arange(1 - len(score), 1)
            if bias is not None:
                distances = np.arange(len(score) - 1, -1, -1)
                score = score + bias[head, np.minimum(distances, bias.shape[1] - 1)]
            weight = np.exp(score - score.max())
            out[i, head] = weight / weight.sum() @ v[head // shared]
    return out


class Rows:
    """Some rows of a batch, for `reference`."""

    def __init__(self, batch, rows):
        self.positions, self.sequences = batch.positions[rows], batch.sequences[rows]
        self.page_indptr, self.page_ids = batch.page_indptr, batch.page_ids


@pytest.fixture(scope="module")
def kernels():
    """Those that were compiled, by instruction set and spec."""
    return {}


@pytest.fixture
def attend(any_machine, kernels):
    def build(h, g, e, kv_dtype):
        spec = AttentionSpec(heads=h, kv_heads=g, head_dim=e, scale=e**-0.5, kv_dtype=kv_dtype)
        key = any_machine.isa, spec
        if key not in kernels:
            kernels[key] = any_machine.build(CpuKernels(any_machine.isa).attention(spec))

        def run(q, batch, pages):
            indices = (batch.positions, batch.sequences, batch.query_indptr)
            table = (batch.page_indptr, batch.page_ids)
            out = np.full(q.shape, np.nan, "float32")
            return kernels[key](q, *indices, *table, stored(pages), out)[-1]

        return run

    return build


def values(rng, shape, dtype="float32"):
    return converted(rng.standard_normal(shape), dtype)


@pytest.mark.parametrize(
    ("h", "g", "e", "kv_dtype"),
    [
        *(NARROW, COMMON, INT8, INT4),
        *(pytest.param(*s, marks=pytest.mark.nightly) for s in (WIDE, ODD, ODD_INT4)),
        ODD_INT8,
    ],
)
@pytest.mark.by_day("8-4-8-float32", "int4")
def test_mixed_batch(attend, make_batch, h, g, e, kv_dtype):
    rng = np.random.default_rng(e)
    pages = values(rng, (20, 2, g, 16, e), kv_dtype)
    # Decode rows, a whole prompt, a chunk in the middle of one; pages out of order, one unused.
    batch = make_batch(
        [(33, 1, [7, 2, 19]), (0, 40, [4, 1, 9]), (15, 1, [11]), (16, 7, [3, 12]), (0, 1, [0])]
    )
    q = values(rng, (50, h, e))
    out = attend(h, g, e, kv_dtype)(q, batch, pages)
    np.testing.assert_allclose(out, reference(q, batch, pages, e**-0.5), atol=3e-6)


@pytest.mark.parametrize(("h", "g", "e", "kv_dtype"), [NARROW, COMMON, INT8, INT4])
def test_a_cut_prompt_gives_the_same_bits(attend, make_batch, h, g, e, kv_dtype):
    rng = np.random.default_rng(3)
    run, pages = attend(h, g, e, kv_dtype), values(rng, (16, 2, g, 16, e), kv_dtype)
    table = [5, 0, 3, 8, 2, 11, 14, 6, 1]
    q = values(rng, (140, h, e))
    at_once = run(q, make_batch([(0, 140, table)]), pages)
    other, other_q = (20, 1, [9, 10]), values(rng, (1, h, e))
    for cuts in ([0, 1, 17, 50, 140], [0, 16, 32, 139, 140], [0, 70, 140]):
        for start, stop in pairwise(cuts):
            chunk = (start, stop - start, table)
            alone = run(q[start:stop], make_batch([chunk]), pages)
            assert np.array_equal(alone, at_once[start:stop])
            mixed_q = np.concatenate([other_q, q[start:stop], other_q])
            mixed = run(mixed_q, make_batch([other, chunk, other]), pages)
            assert np.array_equal(mixed[1:-1], at_once[start:stop])
            assert np.array_equal(mixed[0], mixed[-1])


@pytest.mark.parametrize(("h", "g", "e", "kv_dtype"), [WIDE, COMMON, ODD, INT8, INT4])
@pytest.mark.by_day("4-1-20", "int8", "int4")
def test_long_contexts(attend, make_batch, h, g, e, kv_dtype):
    """Over several blocks, where decode goes block by block and prefill by tiles."""
    rng = np.random.default_rng(6)
    run, pages = attend(h, g, e, kv_dtype), values(rng, (40, 2, g, 16, e), kv_dtype)
    table = [*rng.permutation(36)]
    q = values(rng, (560, h, e))
    rows = [0, 254, 255, 256, 257, 511, 512, 513, 559]
    prompt = make_batch([(0, 560, table)])
    at_once = run(q, prompt, pages)
    other, other_q = (300, 1, [*range(36, 40), *table[:15]]), values(rng, (1, h, e))
    for row in rows:
        single = (row, 1, table)
        alone = run(q[row : row + 1], make_batch([single]), pages)
        assert np.array_equal(alone[0], at_once[row])
        mixed = run(np.concatenate([other_q, q[row : row + 1]]), make_batch([other, single]), pages)
        assert np.array_equal(mixed[1], at_once[row])
    few = slice(505, 520)
    chunk = run(q[few], make_batch([(505, 15, table)]), pages)
    assert np.array_equal(chunk, at_once[few])
    # With decode rows in the batch its rows share tiles with others and read a part of a block.
    for first in (250, 505, 513):
        part = slice(first, first + 9)
        mixed_q = np.concatenate([other_q, q[part], other_q])
        mixed = run(mixed_q, make_batch([other, (first, 9, table), other]), pages)
        assert np.array_equal(mixed[1:-1], at_once[part])
        assert np.array_equal(mixed[0], mixed[-1])
    some = Rows(prompt, rows)
    np.testing.assert_allclose(at_once[rows], reference(q[rows], some, pages, e**-0.5), atol=3e-6)


@pytest.mark.parametrize(("h", "g", "e", "kv_dtype"), [WIDE, INT8, INT4])
def test_stale_memory_has_no_influence(attend, make_batch, h, g, e, kv_dtype):
    """Neither what a page holds beyond a row, be it NaN, nor pages of others."""
    rng = np.random.default_rng(4)
    run, pages = attend(h, g, e, kv_dtype), values(rng, (8, 2, g, 16, e), kv_dtype)
    batch = make_batch([(18, 1, [6, 1]), (0, 5, [3])])
    q = values(rng, (6, h, e))
    clean = run(q, batch, pages)
    # Bytes 255 are NaN as a scale, 127 a huge one.
    for stale in (255, 127, 0) if kv_dtype in INTEGERS else (0.0, 1e30, -3e38, np.nan, np.inf):
        dirty = np.full(pages.shape, stale, "uint8" if kv_dtype in INTEGERS else pages.dtype)
        dirty = dirty.view(pages.dtype)
        dirty[6], dirty[1, :, :, :3], dirty[3, :, :, :5] = (
            pages[6],
            pages[1, :, :, :3],
            pages[3, :, :, :5],
        )
        assert np.array_equal(run(q, batch, dirty), clean)


@pytest.mark.parametrize(("h", "g", "e", "kv_dtype"), [WIDE, COMMON])
def test_later_rows_have_no_influence(attend, make_batch, h, g, e, kv_dtype):
    """Of the same prompt and tile: not even what is not a number, in a block or at its end."""
    rng = np.random.default_rng(8)
    run, pages = attend(h, g, e, kv_dtype), values(rng, (20, 2, g, 16, e), kv_dtype)
    table = [*rng.permutation(20)]
    batch, q = make_batch([(0, 300, table)]), values(rng, (300, h, e))
    clean = run(q, batch, pages)
    for position in (7, 137, 255, 256, 258):
        dirty = pages.copy()
        dirty[table[position // 16], :, :, position % 16] = np.inf
        out = run(q, batch, dirty)
        assert np.array_equal(out[:position], clean[:position])
        assert not np.array_equal(out[position], clean[position])


def test_large_scores_do_not_overflow(attend, make_batch):
    """The running maximum keeps the exponentials in range, also when it rises late."""
    rng = np.random.default_rng(5)
    pages = values(rng, (4, 2, 4, 16, 8))
    pages[2, 0] *= 200
    q = 30 * values(rng, (1, 8, 8))
    batch = make_batch([(45, 1, [0, 1, 2])])
    out = attend(*NARROW)(q, batch, pages)
    np.testing.assert_allclose(out, reference(q, batch, pages, 8**-0.5), atol=1e-4)


def test_no_kernel_for_what_it_cannot_do(here):
    odd = AttentionSpec(heads=2, kv_heads=1, head_dim=6, scale=1.0)
    paged = AttentionSpec(heads=2, kv_heads=1, head_dim=8, scale=1.0, page_size=32)
    kernels = CpuKernels(here.isa)
    assert kernels.attention(odd) is None
    assert kernels.attention(paged) is None

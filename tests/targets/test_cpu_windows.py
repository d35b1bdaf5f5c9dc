"""Attention with a window, capped scores, ALiBi on CPUs, against NumPy, and cut in any way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from wherry.targets.kernels import AttentionSpec
from wherry.targets.kernels.cpu import CpuKernels

from .page_layout import INTEGERS, stored
from .test_cpu_attention import reference, values

pytestmark = pytest.mark.cpu
ALIBI = tuple(2.0 ** (-1 - 0.9 * head) for head in range(6))
# h, g, e, dtype of the cache, window, cap, slopes: in a tile, in a block, over blocks.
CASES = [
    (4, 2, 16, "float32", 5, None),
    (9, 3, 64, "float16", 37, None),
    (4, 2, 128, "int8", 100, 5.0),
    (4, 2, 128, "int4", 100, 5.0),
    (8, 8, 64, "float32", 300, None),
    (4, 1, 20, "float32", None, 3.0),
    (6, 3, 96, "float16", None, None, ALIBI),
    (4, 4, 16, "float32", 40, 5.0, ALIBI[2:]),
]


class Attend:
    def __init__(self, here, h, g, e, kv_dtype, window, softcap, slopes=()):
        self.shape, self.kv_dtype, self.window, self.softcap = (h, g, e), kv_dtype, window, softcap
        self.slopes = slopes
        spec = AttentionSpec(
            heads=h,
            kv_heads=g,
            head_dim=e,
            scale=e**-0.5,
            window=window,
            softcap=softcap,
            slopes=slopes,
            kv_dtype=kv_dtype,
        )
        self.kernel = here.build(CpuKernels(here.isa).attention(spec))

    def __call__(self, q, batch, pages):
        indices = (batch.positions, batch.sequences, batch.query_indptr)
        out = np.full(q.shape, np.nan, "float32")
        table = (batch.page_indptr, batch.page_ids)
        return self.kernel(q, *indices, *table, stored(pages), out)[-1]

    def expected(self, q, batch, pages):
        rest = (self.shape[2] ** -0.5, self.window, self.softcap, self.slopes)
        return reference(q, batch, pages, *rest)


@pytest.fixture(
    params=[pytest.param(c, marks=pytest.mark.nightly if "int8" in c else ()) for c in CASES],
    ids=str,
)
def attend(request, here):
    return Attend(here, *request.param)


def behind(attend, table, first):
    """The pages of a sequence, those that no row from position `first` on sees given away."""
    gone = max(first + 1 - attend.window, 0) // 16 if attend.window else 0
    return [POISON] * gone + table[gone:]


POISON = 39  # a page of what is not a number


@pytest.mark.by_day("37, None", "40, 5.0")
def test_rows_have_the_same_bits_however_they_are_computed(attend, make_batch):
    h, g, e = attend.shape
    rng = np.random.default_rng(e)
    pages = values(rng, (40, 2, g, 16, e), attend.kv_dtype)
    if attend.kv_dtype not in INTEGERS:
        pages[POISON] = np.nan
    table = [int(i) for i in rng.permutation(38)]
    q = values(rng, (560, h, e))
    prompt = make_batch([(0, 560, table)])
    at_once = attend(q, prompt, pages)
    np.testing.assert_allclose(at_once, attend.expected(q, prompt, pages), atol=5e-6)
    other, other_q = (20, 1, [38, 0]), values(rng, (1, h, e))
    for cuts in ([0, 1, 17, 50, 140], [250, 258, 270], [505, 520, 560], [299, 300, 301, 303]):
        for start, stop in pairwise(cuts):
            chunk = (start, stop - start, behind(attend, table, start))
            alone = attend(q[start:stop], make_batch([chunk]), pages)
            assert np.array_equal(alone, at_once[start:stop])
            mixed_q = np.concatenate([other_q, q[start:stop], other_q])
            mixed = attend(mixed_q, make_batch([other, chunk, other]), pages)
            assert np.array_equal(mixed[1:-1], at_once[start:stop])
            assert np.array_equal(mixed[0], mixed[-1])
    for row in (0, 4, 5, 36, 37, 100, 255, 256, 299, 300, 511, 512, 559):
        alone = attend(q[row : row + 1], make_batch([(row, 1, behind(attend, table, row))]), pages)
        assert np.array_equal(alone[0], at_once[row])


@pytest.mark.parametrize(
    "attend", [c for c in CASES if c[4] and c[3] not in INTEGERS], indirect=True, ids=str
)
@pytest.mark.by_day("5, None", "40, 5.0")
def test_tokens_that_a_row_does_not_see_have_no_influence(attend, make_batch):
    """Not even what is not a number, seen by other rows of the same tile."""
    h, g, e = attend.shape
    rng = np.random.default_rng(8)
    pages = values(rng, (20, 2, g, 16, e), attend.kv_dtype)
    table = [int(i) for i in rng.permutation(20)]
    batch, q = make_batch([(0, 320, table)]), values(rng, (320, h, e))
    clean = attend(q, batch, pages)
    for position in (2, 8, 255, 256):
        dirty = pages.copy()
        dirty[table[position // 16], :, :, position % 16] = np.inf
        out = attend(q, batch, dirty)
        end = position + attend.window  # the first row that does not see it again
        assert np.array_equal(out[:position], clean[:position])
        assert np.array_equal(out[end:], clean[end:])
        last = min(end, 320) - 1
        assert not np.array_equal(out[last], clean[last])

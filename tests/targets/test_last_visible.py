"""Attention of rows that see later ones: images that see themselves from both sides (Gemma 3)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from wherry.targets.kernels import AttentionSpec
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits, tensor_cores

from ..support.builders import KINDS, builder
from .page_layout import floats, stored
from .test_cpu_attention import values
from .test_cpu_rows import rotated
from .test_paged_attention import Kernel

GPU = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})
# h, g, e, dtype of the cache, window
CASES = [
    (8, 4, 8, "float32", None),
    (4, 2, 16, "float32", 37),
    (9, 3, 64, "float16", 100),
    (8, 2, 128, "float16", None),
    (6, 3, 20, "int8", 300),
    (4, 1, 40, "int4", None),
]
ROWS = 420
SPANS = [(5, 12), (12, 20), (90, 190), (250, 262), (300, 301), (330, 410)]  # first, stop of images
CUTS = [0, 3, 5, 20, 60, 90, 195, 250, 262, 411, 419, ROWS]  # where a prompt may be cut
SHORT = (20, 1, [38, 0])  # another sequence of the batch


def last_visible(first, rows):
    """The last position that each row attends to, of rows at `first` and on."""
    last = np.arange(first, first + rows, dtype="int32")
    for begin, stop in SPANS:
        last[(last >= begin) & (last < stop)] = stop - 1
    return last


class Attend:
    def __init__(self, kernels, build, case, layout):
        self.h, self.g, self.e, self.kv_dtype, self.window = case
        self.layout = layout
        self.scale = self.e**-0.5
        spec = AttentionSpec(
            heads=self.h,
            kv_heads=self.g,
            head_dim=self.e,
            scale=self.scale,
            window=self.window,
            kv_dtype=self.kv_dtype,
            last_visible=True,
        )
        self.kernel = build(kernels.attention(spec))
        rng = np.random.default_rng(self.e)
        self.pages = values(rng, (40, 2, self.g, 16, self.e), self.kv_dtype)
        self.q = values(rng, (ROWS + 1, self.h, self.e))
        self.table = [int(i) for i in np.random.default_rng(2).permutation(37)]

    def __call__(self, q, batch, last, pages=None):
        pages = self.pages if pages is None else pages
        rows = (batch.positions, batch.sequences, batch.query_indptr)
        table, out = (batch.page_indptr, batch.page_ids), np.full(q.shape, np.nan, "float32")
        return self.kernel(q, *rows, *table, last, self.layout(pages), out)[-1]

    def expected(self, row, last):
        """A row of the prompt in NumPy."""
        first = max(row + 1 - (self.window or ROWS), 0)
        k, v = (
            floats(self.pages)[self.table, which].transpose(1, 0, 2, 3).reshape(self.g, -1, self.e)
            for which in (0, 1)
        )
        k, v = (x[:, first : last + 1] for x in (k, v))
        shared, out = self.h // self.g, np.zeros((self.h, self.e))
        for head in range(self.h):
            score = k[head // shared] @ self.q[row, head] * self.scale
            weight = np.exp(score - score.max())
            out[head] = weight / weight.sum() @ v[head // shared]
        return out


def check(attend, make_batch):
    """A whole prompt against NumPy, then parts of it, alone and in company: the same bits."""
    last = last_visible(0, ROWS)
    at_once = attend(attend.q[:-1], make_batch([(0, ROWS, attend.table)]), last)
    for row in (0, 4, 5, 11, 12, 60, 90, 130, 189, 190, 255, 256, 261, 300, 340, 409, 410, 419):
        np.testing.assert_allclose(at_once[row], attend.expected(row, last[row]), atol=5e-6)
    other, of_other = attend.q[-1:], np.array([20], "int32")
    for start, stop in pairwise(CUTS):
        part = slice(start, stop)
        chunk = (start, stop - start, attend.table)
        alone = attend(attend.q[part], make_batch([chunk]), last[part])
        assert np.array_equal(alone, at_once[part])
        mixed = attend(
            np.concatenate([other, attend.q[part], other]),
            make_batch([SHORT, chunk, SHORT]),
            np.concatenate([of_other, last[part], of_other]),
        )
        assert np.array_equal(mixed[1:-1], at_once[part])
        assert np.array_equal(mixed[0], mixed[-1])
    # A hit of the prefix cache ends inside an image; the rest of it is in one step.
    for start, stop in ((100, 190), (189, 192), (333, 411), (8, 25)):
        part = slice(start, stop)
        chunk = make_batch([(start, stop - start, attend.table)])
        assert np.array_equal(attend(attend.q[part], chunk, last[part]), at_once[part])


def check_unseen(attend, make_batch):
    """What lies outside of a row's positions changes none of its bits, even if it is no number."""
    batch, last = make_batch([(0, ROWS, attend.table)]), last_visible(0, ROWS)
    clean = attend(attend.q[:-1], batch, last)
    for position in (7, 95, 189, 256, 335, 411):
        dirty = attend.pages.copy()
        dirty[attend.table[position // 16], :, :, position % 16] = np.inf
        out = attend(attend.q[:-1], batch, last, dirty)
        window = attend.window or ROWS
        sees = (np.arange(ROWS) + 1 - window <= position) & (last >= position)
        changed = np.array([not np.array_equal(a, b) for a, b in zip(out, clean, strict=True)])
        assert np.array_equal(changed, sees)


@pytest.mark.cpu
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.by_day("(4, 2, 16", "(6, 3, 20", "(8, 4, 8")
class TestCpu:
    def test_complete_images_in_any_chunks(self, case, any_machine, make_batch):
        kernels = CpuKernels(any_machine.isa)
        check(Attend(kernels, any_machine.build, case, stored), make_batch)

    def test_what_a_row_does_not_see(self, case, any_machine, make_batch):
        if case[3].startswith("int"):
            case = (*case[:3], "float32", case[4])
        kernels = CpuKernels(any_machine.isa)
        check_unseen(Attend(kernels, any_machine.build, case, stored), make_batch)


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES[:4], ids=str)
def test_on_devices(case, build, make_batch):
    attend = Attend(GPU, build, case, np.copy)
    check(attend, make_batch)
    check_unseen(attend, make_batch)


class Fused(Kernel):
    """RoPE, append and attention in one."""

    def __init__(self, build, case, kernels):
        super().__init__(build, *case, pages=60, kernels=kernels, last_visible=True)
        self.window = self.rest[0] or ROWS
        self.table = np.random.default_rng(1).permutation(36)[: -(-ROWS // 16)].tolist()

    def expected_row(self, qkv, row, last, pages):
        x = qkv[row : row + 1, : self.h].astype("float64")
        if self.eps:
            x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.norms[0]
        q = rotated(x, np.array([row]), self.inv_freq, 1.0, ())[0]
        k, v = (
            floats(pages)[self.table, which].transpose(1, 0, 2, 3).reshape(self.g, -1, self.e)
            for which in (0, 1)
        )
        first, out = max(row + 1 - self.window, 0), np.zeros((self.h, self.e))
        for head in range(self.h):
            own = head // (self.h // self.g)
            score = k[own, first : last + 1] @ q[head] * self.e**-0.5
            weight = np.exp(score - score.max())
            out[head] = weight / weight.sum() @ v[own, first : last + 1]
        return out


def check_fused(kernel, make_batch, rows, bound):
    """A prompt at once, and in chunks beside decode rows and another prompt: the same bits."""
    last, qkv = last_visible(0, ROWS), kernel.rows(0, ROWS)
    batch = make_batch([(0, ROWS, kernel.table)])
    at_once, pages = kernel(qkv, batch, kernel.pages, last_visible=last)
    for row in rows:
        expected = kernel.expected_row(qkv, row, last[row], pages)
        assert np.abs(at_once[row] - expected).max() <= bound * np.abs(expected).max()
    others, left = [(20, 1, [40, 41]), (3, 4, [42])], kernel.pages
    ends = np.array([20], "int32"), np.arange(3, 7, dtype="int32")
    for start, stop in pairwise(CUTS):
        part = slice(start, stop)
        mixed = make_batch([others[0], (start, stop - start, kernel.table), others[1]])
        more = np.concatenate([kernel.rows(5, 1), qkv[part], kernel.rows(6, 4)])
        bounds = np.concatenate([ends[0], last[part], ends[1]])
        got, left = kernel(more, mixed, left, last_visible=bounds)
        assert np.array_equal(got[1:-4], at_once[part])
    assert np.array_equal(left[kernel.table], pages[kernel.table])


FUSED = [  # as `Kernel`'s cases
    (4, 2, 64, 1e-6, "float16", 100),
    (4, 1, 128, None, "float16"),
    (2, 1, 256, 1e-6, "float16", 300),
]
SOME = (0, 4, 5, 11, 12, 60, 90, 189, 190, 255, 256, 261, 300, 340, 409, 410, 419)


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("case", [*FUSED[:2], (4, 2, 16, None, "float32", 37)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_fused_on_devices(kind, case, make_batch):
    kernel = Fused(builder(kind), case, GPU)
    check_fused(kernel, make_batch, SOME, 2e-3 if case[4] == "float16" else 1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("case", FUSED, ids=str)
def test_tensor_cores(case, make_batch):
    limits = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
    kernel = Fused(builder("cuda"), case, GpuKernels(limits, {}))
    assert tensor_cores.fits_attention(kernel.spec)
    check_fused(kernel, make_batch, SOME, 5e-3)

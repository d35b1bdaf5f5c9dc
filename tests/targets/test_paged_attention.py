"""The fused attention on devices: against the reference, any batch against any other."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import PagedAttentionSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.kernels.gpu.attend import SPLIT
from wherry.targets.kernels.specs import BatchTableSpec

from ..support.builders import KINDS, builder
from .test_cpu_attention import reference
from .test_cpu_rows import rotated

pytestmark = pytest.mark.gpu
LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)
KERNELS = GpuKernels(LIMITS, {})
CASES = [(4, 2, 128, 1e-6), (7, 1, 8, None), (8, 1, 64, None), (4, 2, 80, None), (5, 5, 20, 1e-5)]
# PoCL takes seconds to compile a kernel, the emulator of Metal to run one: they have the extremes.
ON = [(kind, case) for kind in KINDS for case in (CASES if kind == "vulkan" else CASES[:2])]


def table_of(batch):
    first = 2 * len(batch.positions) + batch.page_indptr[batch.sequences]
    rows = np.stack([batch.positions, first], 1).reshape(-1)
    return np.concatenate([rows, batch.page_ids]).astype("int32")


class Kernel:
    def __init__(self, build, h, g, e, eps, pages=90):
        self.h, self.g, self.e, self.eps = h, g, e, eps
        self.inv_freq = (10000.0 ** (-np.arange(e // 2) * 2 / e)).astype("float32")
        spec = PagedAttentionSpec(
            heads=h,
            kv_heads=g,
            head_dim=e,
            rotary_dim=e,
            inv_freq=tuple(map(float, self.inv_freq)),
            scale=e**-0.5,
            qk_norm_eps=eps,
        )
        self.kernel = KERNELS.paged_attention(spec)
        self.call = build(self.kernel.compute)
        rng = np.random.default_rng(h + e)
        self.norms = [rng.uniform(0.5, 2, e).astype("float32") for _ in range(2)] if eps else []
        self.pages = rng.standard_normal((pages, 2, g, 16, e)).astype("float32")

    def __call__(self, qkv, batch, pages):
        """(out, pages)."""
        n = len(qkv)
        scratch = [
            np.full([n if d == "n" else d for d in shape], np.nan, dtype)
            for shape, dtype in self.kernel.scratch
        ]
        out = np.full((n, self.h, self.e), np.nan, "float32")
        inputs = [qkv, table_of(batch), batch.query_indptr, *self.norms, pages]
        made = self.call(*inputs, out, *scratch)
        return made[len(inputs)], made[len(inputs) - 1]

    def expected(self, qkv, batch, pages):
        """The same in NumPy, from the pages that the kernel left."""
        x = qkv[:, : self.h].astype("float64")
        if self.eps:
            x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.norms[0]
        q = rotated(x, batch.positions, self.inv_freq, 1.0)
        return reference(q, batch, pages, self.e**-0.5)

    def rows(self, seed, n):
        shape = (n, self.h + 2 * self.g, self.e)
        return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.fixture(scope="module", params=ON, ids=str)
def kernel(request):
    kind, case = request.param
    return Kernel(builder(kind), *case)


def test_batch_table(build, make_batch):
    batch = make_batch([(33, 1, [7, 2, 19]), (0, 40, [4, 1, 9]), (16, 200, list(range(20, 34)))])
    arrays = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    wanted = table_of(batch)
    compute = build(KERNELS.batch_table(BatchTableSpec()).compute)
    assert np.array_equal(compute(*arrays, np.full(wanted.shape, -9, "int32"))[-1], wanted)


def test_every_path_gives_a_row_the_same_bits(kernel, make_batch):
    """A prompt in one piece, in chunks, and token by token, over more than one split."""
    length = SPLIT + 70
    table = np.random.default_rng(1).permutation(60)[: -(-length // 16)].tolist()
    qkv = kernel.rows(0, length)
    batch = make_batch([(0, length, table)])
    whole, pages = kernel(qkv, batch, kernel.pages)
    np.testing.assert_allclose(whole, kernel.expected(qkv, batch, pages), atol=1e-5)
    assert not np.array_equal(pages, kernel.pages)

    others = [(20, 1, [70, 71]), (3, 4, [72])]
    rubbish = kernel.pages
    for start, stop in ((0, 63), (63, 64), (64, 250), (250, 259), (259, length - 4)):
        rows = np.concatenate([kernel.rows(5, 1), qkv[start:stop], kernel.rows(6, 4)])
        mixed = make_batch([others[0], (start, stop - start, table), others[1]])
        got, rubbish = kernel(rows, mixed, rubbish)
        assert np.array_equal(got[1:-4], whole[start:stop])
    for position in range(length - 4, length):  # decode: alone, which splits; with others
        more = [(20, 1, [70, 71]), (300, 1, list(range(70, 89)))] * (position % 2)
        rows = np.concatenate([qkv[position : position + 1], kernel.rows(7, len(more))])
        got, rubbish = kernel(rows, make_batch([(position, 1, table), *more]), rubbish)
        assert np.array_equal(got[0], whole[position])
    assert np.array_equal(rubbish[table], pages[table])


def test_many_decode_rows_share_no_splits_and_agree(kernel, make_batch):
    """More rows than there is memory for their splits: each block does all of its row."""
    table, q = list(range(40)), kernel.rows(3, 1)
    position = 2 * SPLIT + 5
    table = table[: position // 16 + 1]
    alone, pages = kernel(q, make_batch([(position, 1, table)]), kernel.pages)
    many = [(position, 1, table)] + [(i, 1, [80]) for i in range(40)]
    rows = np.concatenate([q, kernel.rows(4, 40)])
    wide = [*many, *[(15, 1, list(range(50, 80)))] * 40]
    got, _ = kernel(np.concatenate([rows, kernel.rows(8, 40)]), make_batch(wide), kernel.pages)
    assert np.array_equal(got[0], alone[0])
    expected = kernel.expected(q, make_batch([(position, 1, table)]), pages)
    np.testing.assert_allclose(alone, expected, atol=1e-5)

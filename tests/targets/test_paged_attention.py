"""The fused attention on devices: against the reference, any batch against any other."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops import BatchTableSpec
from wherry.passes.kernels import scratch_types
from wherry.targets.kernels import PagedAttentionSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.kernels.gpu.splits import MOST_SLOTS, SPLIT

from ..support.builders import KINDS, builder
from .page_layout import INTEGERS, as_bytes, as_words, converted, floats, tolerances
from .test_cpu_attention import reference
from .test_cpu_rows import by_axes, rotated

pytestmark = pytest.mark.gpu
LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)
KERNELS = GpuKernels(LIMITS, {})
AXES = (0, 1, 2, 0, 1, 2, 0, 0)  # of each frequency
CASES = [  # h, g, e, eps, dtype of what is kept: qkv, pages, result
    (4, 2, 128, 1e-6, "float16"),
    (7, 1, 8, None, "float32"),
    (8, 1, 64, None, "float16"),
    (4, 2, 80, None, "float32"),
    (5, 5, 20, 1e-5, "float16"),
    (8, 2, 16, None, "float32", 37, 5.0),  # with a window, and capped scores
    (4, 2, 16, 1e-6, "float16", 300),
    (6, 2, 32, None, "float32", None, None, (0.5, 0.27, 0.13, 0.06, 0.03, 0.01)),  # ALiBi
    (4, 2, 16, 1e-6, "float32", 37, None, (), True, "both"),  # values are normed
    (8, 2, 32, 1e-6, "float16", None, None, (), True, "keys"),  # keys are the values
    (4, 1, 16, 1e-6, "float16", 300, None, (), False, "none"),  # another layer's pages
    (4, 2, 64, 1e-6, "float16", None, None, (), False, "both", "int4"),  # integers in pages
    (8, 2, 40, None, "float32", 37, 5.0, (), False, "both", "int8"),
    (4, 2, 32, 1e-6, "float32", 300, None, (), True, "keys", "int4"),
    (4, 2, 16, 1e-6, "float16", 300, None, (), False, "both", None, 2, AXES),  # M-RoPE
    (2, 1, 16, None, "float32", None, None, (), False, "both", "int8", 2, AXES),
]
CLOSE = {"float32": {"atol": 1e-5}, "float16": {"rtol": 2.0**-11, "atol": 2.0**-14}}
# PoCL takes seconds to compile a kernel, the emulator of Metal to run one: they have the extremes,
# and by day the first of them.
EXTREMES = [*CASES[:2], CASES[5], CASES[7], CASES[9], CASES[11], CASES[14]]


def _by_day(kind, case):
    return case is CASES[0] or (kind == "vulkan" and case in BY_DAY)


BY_DAY = [CASES[5], CASES[9], CASES[14]]  # on Vulkan
ON = [
    pytest.param((kind, case), marks=[] if _by_day(kind, case) else pytest.mark.nightly)
    for kind in KINDS
    for case in (CASES if kind == "vulkan" else EXTREMES)
]


SPLIT_PAGES = SPLIT // 16


def sizes_of(batch):
    """What scratch memory depends on."""
    n, r, p = len(batch.positions), len(batch.query_indptr) - 1, len(batch.page_ids)
    return {"n": n, "m": n, "r": r, "p": p}


def scratch(kernel, batch):
    """Memory of a kernel's own, filled with what is no number."""
    shapes = scratch_types(kernel, sizes_of(batch))
    return [np.full([int(d) for d in ty.shape], np.nan, str(ty.dtype)) for ty in shapes]


def table_of(batch, most=MOST_SLOTS):
    """What `batch_table` makes, in NumPy."""
    n, r, p = (sizes_of(batch)[k] for k in "nrp")
    counts = np.diff(batch.query_indptr)[batch.sequences]
    pages = batch.page_indptr[batch.sequences]
    enough = p // SPLIT_PAGES + r <= most
    first = np.where((counts == 1) & enough, pages // SPLIT_PAGES + batch.sequences, -1)
    rows = np.stack([batch.positions, 3 * n + pages, first], 1).reshape(-1)
    slots = np.full(min(p // SPLIT_PAGES + r, most), -1)
    for row in np.flatnonzero(first >= 0):
        count = batch.positions[row] // SPLIT + 1
        assert (slots[first[row] : first[row] + count] == -1).all()  # no slot of another row
        slots[first[row] : first[row] + count] = row
    return np.concatenate([rows, batch.page_ids, slots]).astype("int32")


class Kernel:
    def __init__(
        self,
        build,
        h,
        g,
        e,
        eps,
        dtype,
        window=None,
        softcap=None,
        slopes=(),
        v_norm=False,
        kv="both",
        kv_dtype=None,
        planes=2,
        axes=(),
        pages=90,
        kernels=KERNELS,
        out_dtype=None,
        last_visible=False,
    ):
        self.h, self.g, self.e, self.eps, self.dtype = h, g, e, eps, dtype
        self.v_norm, self.kv, self.out_dtype = v_norm, kv, out_dtype or dtype
        self.kv_dtype = kv_dtype or dtype
        self.axes = axes
        self.rest = (window, softcap, slopes)
        self.inv_freq = (10000.0 ** (-np.arange(e // 2) * 2 / e)).astype("float32")
        spec = PagedAttentionSpec(
            heads=h,
            kv_heads=g,
            head_dim=e,
            rotary_dim=e,
            inv_freq=tuple(map(float, self.inv_freq)),
            axes=axes,
            scale=e**-0.5,
            qk_norm_eps=eps,
            kv_dtype=self.kv_dtype,
            words=self.kv_dtype in INTEGERS,
            qkv_dtype=dtype,
            out_dtype=self.out_dtype,
            window=window,
            softcap=softcap,
            slopes=slopes,
            v_norm=v_norm,
            kv=kv,
            planes=planes,
            last_visible=last_visible,
        )
        self.width = spec.rope().qkv_heads
        self.spec = spec
        self.kernel = kernels.paged_attention(spec)
        self.call = build(self.kernel.compute)
        rng = np.random.default_rng(h + e)
        self.norms = [rng.uniform(0.5, 2, e).astype("float32") for _ in range(2)] if eps else []
        self.pages = converted(rng.standard_normal((pages, planes, g, 16, e)), self.kv_dtype)

    def __call__(self, qkv, batch, pages, most=MOST_SLOTS, last_visible=()):
        """(out, pages)."""
        out = np.full((len(qkv), self.h, self.e), np.nan, self.out_dtype)
        more = [by_axes(batch.positions)] if self.axes else []
        more += [last_visible] if self.spec.last_visible else []
        inputs = [qkv, table_of(batch, most), batch.query_indptr, *more, *self.norms]
        inputs.append(as_words(pages))
        own = scratch(self.kernel, batch)
        own[1] = own[1][:most]
        results = self.call(*inputs, out, *own)
        return results[len(inputs)], as_bytes(results[len(inputs) - 1], self.kv_dtype)

    def expected(self, qkv, batch, pages):
        """The same in NumPy, from the pages that the kernel left."""
        x = qkv[:, : self.h].astype("float64")
        if self.eps:
            x = x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.norms[0]
        q = rotated(x, batch.positions, self.inv_freq, 1.0, self.axes)
        both = floats(pages)[:, [0, -1]]  # of one plane keys are the values
        return reference(q, batch, both, self.e**-0.5, *self.rest)

    def rows(self, seed, n):
        shape = (n, self.width, self.e)
        return np.random.default_rng(seed).standard_normal(shape).astype(self.dtype)

    def values(self, qkv):
        """What the pages should have of rows, [n, g, e]."""
        v = qkv[:, -self.g :].astype("float64")
        return v / np.sqrt((v**2).mean(-1, keepdims=True) + self.eps) if self.v_norm else v

    def close_to_values(self, got, expected):
        if self.kv_dtype not in INTEGERS:
            self.close(got, expected)
            return
        both = np.stack([expected, expected], 1)[:, :, :, None]  # as pages of one token
        near = tolerances(both, self.kv_dtype)[:, 1, :, 0]
        assert (np.abs(got - expected) <= near + 1e-5).all()

    def close(self, got, expected):
        np.testing.assert_allclose(got, expected, **CLOSE[self.dtype])


@pytest.fixture(scope="module", params=ON, ids=str)
def kernel(request):
    kind, case = request.param
    return Kernel(builder(kind), *case)


def test_batch_table(build, make_batch):
    rows = [(33, 1, [7, 2, 19]), (0, 40, [4, 1, 9]), (16, 200, list(range(20, 34)))]
    rows += [(2 * SPLIT + 1, 1, list(range(40, 80))), (255, 1, list(range(16))), (0, 1, [3])]
    batch = make_batch(rows)
    names = ("positions", "sequences", "query_indptr", "page_indptr", "page_ids")
    arrays = [getattr(batch, name) for name in names]
    kernel = KERNELS.batch_table(BatchTableSpec())
    (ty,) = scratch_types(kernel, sizes_of(batch))
    expected = table_of(batch)
    assert [int(d) for d in ty.shape] == list(expected.shape) and expected[2] == 0
    compute = build(kernel.compute)
    for most in (len(expected), 5):  # memory for all slots, and for some
        expected = table_of(batch, most)
        got = compute(*arrays, np.full(expected.shape, -9, "int32"))[-1]
        assert np.array_equal(got[:-5], expected[:-5])
        assert most == 5 or np.array_equal(got, expected)


def test_every_path_gives_a_row_the_same_bits(kernel, make_batch):
    """A prompt in one piece, in chunks, and token by token, over more than one split."""
    length = SPLIT + 70
    table = np.random.default_rng(1).permutation(60)[: -(-length // 16)].tolist()
    qkv = kernel.rows(0, length)
    batch = make_batch([(0, length, table)])
    at_once, pages = kernel(qkv, batch, kernel.pages)
    kernel.close(at_once, kernel.expected(qkv, batch, pages))
    assert np.array_equal(pages, kernel.pages) == (kernel.kv == "none")
    if kernel.kv != "none":
        cached = np.moveaxis(floats(pages)[table, 1], 1, 2).reshape(-1, kernel.g, kernel.e)
        kernel.close_to_values(cached[:length], kernel.values(qkv))

    others = [(20, 1, [70, 71]), (3, 4, [72])]
    rubbish = kernel.pages
    for start, stop in ((0, 63), (63, 64), (64, 250), (250, 259), (259, length - 4)):
        rows = np.concatenate([kernel.rows(5, 1), qkv[start:stop], kernel.rows(6, 4)])
        mixed = make_batch([others[0], (start, stop - start, table), others[1]])
        got, rubbish = kernel(rows, mixed, rubbish)
        assert np.array_equal(got[1:-4], at_once[start:stop])
    for position in range(length - 4, length):  # decode: alone, which splits; with others
        more = [(20, 1, [70, 71]), (300, 1, list(range(70, 89)))] * (position % 2)
        rows = np.concatenate([qkv[position : position + 1], kernel.rows(7, len(more))])
        got, rubbish = kernel(rows, make_batch([(position, 1, table), *more]), rubbish)
        assert np.array_equal(got[0], at_once[position])
    assert np.array_equal(rubbish[table], pages[table])


def test_a_decode_row_has_the_same_bits_beside_prompts_and_many_rows(kernel, make_batch):
    """With long and short neighbours, and with and without memory for its splits."""
    table, q = list(range(40)), kernel.rows(3, 1)
    position = 2 * SPLIT + 5
    table = table[: position // 16 + 1]
    alone, pages = kernel(q, make_batch([(position, 1, table)]), kernel.pages)
    expected = kernel.expected(q, make_batch([(position, 1, table)]), pages)
    kernel.close(alone, expected)
    others = {
        "nine rows": [(i, 1, [80 + i]) for i in range(8)],
        "a prompt": [(9, 20, [41, 42])],
        "prompts and rows": [(0, 9, [41]), (SPLIT, 1, list(range(50, 67))), (30, 3, [43, 44, 45])],
    }
    for name, more in others.items():
        rows = kernel.rows(4, sum(count for _, count, _ in more))
        for most in (MOST_SLOTS, 3):
            before = make_batch([*more, (position, 1, table)])
            got, left = kernel(np.concatenate([rows, q]), before, kernel.pages, most)
            assert np.isfinite(got).all() and np.array_equal(got[-1], alone[0]), (name, most)
            assert np.array_equal(left[table], pages[table]), (name, most)
        kernel.close(got, kernel.expected(np.concatenate([rows, q]), before, left))

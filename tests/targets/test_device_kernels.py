"""The GPU kernels on devices, or emulated, against NumPy, and row by row against themselves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from wherry.targets.kernels import (
    AttentionSpec,
    EmbeddingSpec,
    LinearSpec,
    RMSNormSpec,
    RopeAppendSpec,
    SwiGLUSpec,
)
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from .page_layout import INTEGERS, as_bytes, as_words, converted, floats, tolerances
from .test_cpu_attention import reference
from .test_cpu_linear import FORMATS, portable
from .test_cpu_rows import by_axes, rotated

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})


@pytest.mark.parametrize(
    ("n", "k", "scheme", "scale_dtype"),
    [
        *((70, 172, *format_) for format_ in FORMATS),
        (24, 40, "q4", "float16"),  # less than a group for some lane
        (130, 1088, "q4", "float16"),  # several groups a lane, columns beyond two tiles
    ],
)
@pytest.mark.by_day("opencl-70-172-q4", "vulkan-70-172-q8", "metal-70")
def test_linear(build, n, k, scheme, scale_dtype):
    rng = np.random.default_rng(n + k)
    spec = LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype)
    compute = build(KERNELS.linear(spec))
    stored, weight = portable(rng, n, k, scheme, scale_dtype)
    x = rng.standard_normal((37, k)).astype("float32")

    def run(rows):
        return compute(rows, *stored, np.full((len(rows), n), np.nan, "float32"))[-1]

    y, expected = run(x), x.astype("float64") @ weight.T.astype("float64")
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < 1e-6
    # GEMV and GEMM are different kernels: the same bits.
    for start, stop in ((0, 1), (5, 7), (9, 17), (9, 18), (30, 37)):
        assert np.array_equal(run(x[start:stop]), y[start:stop])
    order = rng.permutation(37)
    assert np.array_equal(run(x[order]), y[order])
    assert run(x[:0]).shape == (0, n)


@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.by_day("opencl", "metal-q8")
def test_embedding(build, scheme, scale_dtype):
    n, k = 30, 44
    spec = EmbeddingSpec(vocab=n, dim=k, scheme=scheme, scale_dtype=scale_dtype)
    stored, table = portable(np.random.default_rng(2), n, k, scheme, scale_dtype)
    tokens = np.array([0, n - 1, n // 2, 3, 3], "int32")
    y = build(KERNELS.embedding(spec))(tokens, *stored, np.zeros((5, k), "float32"))[-1]
    assert np.array_equal(y, table[tokens])


@pytest.mark.parametrize("d", [5, 172, 1000])
@pytest.mark.by_day("opencl", "metal")
def test_norms(build, d):
    rng = np.random.default_rng(d)
    spec = RMSNormSpec(dim=d, eps=1e-5)
    norm, add_norm = build(KERNELS.rms_norm(spec)), build(KERNELS.add_rms_norm(spec))
    x, r = rng.standard_normal((2, 20, d)).astype("float32")
    w, empty = rng.standard_normal(d).astype("float32"), np.full((20, d), np.nan, "float32")
    total, y = add_norm(x, r, w, empty, empty)[-2:]
    assert np.array_equal(total, x + r)
    exact = total.astype("float64")
    exact = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y, exact, rtol=2e-6, atol=1e-6)
    assert np.array_equal(norm(total, w, empty)[-1], y)
    assert np.array_equal(norm(total[7:9], w, empty[:2])[-1], y[7:9])


@pytest.mark.parametrize("d", [5, 300])
def test_swiglu(build, d):
    rng = np.random.default_rng(d)
    x = (20 * rng.standard_normal((9, 2 * d))).astype("float32")
    x[0, :4] = [0.0, -200.0, 200.0, -88.0]
    y = build(KERNELS.swiglu(SwiGLUSpec(dim=d)))(x, np.full((9, d), np.nan, "float32"))[-1]
    gate, up = x[:, :d].astype("float64"), x[:, d:].astype("float64")
    with np.errstate(over="ignore"):
        expected = gate / (1 + np.exp(-gate)) * up
    # Vulkan's exp(x) may be 3 + 2 |x| units in the last place off.
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-30)


ROPE = [  # h, g, e, rotary, eps, dtype of the cache
    (8, 4, 8, 8, None, "float32"),
    (9, 3, 64, 32, None, "float16"),
    (3, 1, 20, 10, 1e-5, "float16"),
    pytest.param(9, 3, 64, 32, None, "int8", marks=pytest.mark.nightly),
    (3, 1, 40, 10, 1e-5, "int4"),
]
# Of what the cache holds: float16 has 11 bits, and nothing below 2^-14.
CACHED = {"float32": {"atol": 1e-5}, "float16": {"rtol": 2.0**-11, "atol": 2.0**-14}}


@pytest.mark.parametrize(("h", "g", "e", "rotary", "eps", "dtype"), ROPE)
@pytest.mark.by_day("opencl-9", "metal")
def test_rope_append(build, make_batch, h, g, e, rotary, eps, dtype):
    rng = np.random.default_rng(e)
    inv_freq = (10000.0 ** (-np.arange(rotary // 2) * 2 / rotary)).astype("float32")
    spec = RopeAppendSpec(
        heads=h,
        kv_heads=g,
        head_dim=e,
        rotary_dim=rotary,
        inv_freq=tuple(map(float, inv_freq)),
        scaling=1.25,
        qk_norm_eps=eps,
        kv_dtype=dtype,
        words=dtype in INTEGERS,
    )
    kernel = build(KERNELS.rope_append(spec))
    batch = make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])
    table = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    qkv = rng.standard_normal((31, h + 2 * g, e)).astype("float32")
    pages = converted(rng.standard_normal((8, 2, g, 16, e)), dtype)
    weights = [rng.uniform(0.5, 2, e).astype("float32") for _ in range(2)] if eps else []
    empty = np.full((31, h, e), np.nan, "float32")
    got_pages, got_q = kernel(qkv, *table, *weights, as_words(pages), empty)[-2:]
    x = qkv.astype("float64")
    if eps:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
        x = np.concatenate([x[:, :h] * weights[0], x[:, h:] * weights[1]], 1)
    x = rotated(x, batch.positions, inv_freq, 1.25)
    np.testing.assert_allclose(got_q, x[:, :h], atol=1e-5)
    expected = floats(pages)
    for i, (position, s) in enumerate(zip(batch.positions, batch.sequences, strict=True)):
        page = batch.page_ids[batch.page_indptr[s] + position // 16]
        expected[page, 0, :, position % 16] = x[i, h : h + g]
        expected[page, 1, :, position % 16] = qkv[i, h + g :]
    appended = as_bytes(got_pages, dtype)
    if dtype in INTEGERS:
        assert (np.abs(floats(appended) - expected) <= tolerances(expected, dtype) + 1e-5).all()
    else:
        np.testing.assert_allclose(appended, expected, **CACHED[dtype])
    assert np.array_equal(appended[[3, 6]], pages[[3, 6]])
    if eps:  # in two launches, for devices that take few tensors: the same bits
        few = GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8)
        split = build(GpuKernels(few, {}).rope_append(spec))
        split_pages, split_q = split(qkv, *table, *weights, as_words(pages), empty)[-2:]
        assert np.array_equal(split_pages, got_pages) and np.array_equal(split_q, got_q)


@pytest.mark.parametrize("eps", [None, 1e-6])
@pytest.mark.by_day("opencl-None", "vulkan")
def test_axes_of_rope(build, make_batch, eps):
    """M-RoPE: each frequency takes one of three positions; if they are equal, with RoPE's bits."""
    h, g, e, axes = 4, 2, 48, (0, 1, 2) * 5 + (0,) * 3
    rng = np.random.default_rng(1)
    inv_freq = (10000.0 ** (-np.arange(18) * 2 / 36)).astype("float32")
    shape = {"heads": h, "kv_heads": g, "head_dim": e, "rotary_dim": 36, "qk_norm_eps": eps}
    shape["inv_freq"] = tuple(map(float, inv_freq))
    plain, kernel = (
        build(KERNELS.rope_append(RopeAppendSpec(**shape, axes=own))) for own in ((), axes)
    )
    batch = make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])
    places = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    qkv = rng.standard_normal((31, h + 2 * g, e)).astype("float32")
    pages, out = rng.standard_normal((8, 2, g, 16, e)).astype("float32"), qkv[:, :h].copy()
    weights = [np.ones(e, "float32")] * 2 if eps else []
    got_pages, got_q = kernel(qkv, *places, by_axes(batch.positions), *weights, pages, out)[-2:]
    x = qkv.astype("float64")
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) if eps else x
    x = rotated(x, batch.positions, inv_freq, 1.0, axes)
    np.testing.assert_allclose(got_q, x[:, :h], atol=1e-5)
    keys = got_pages[[4, 5], 0, :, [5, 1]]  # of the rows at positions 5 and 33
    np.testing.assert_allclose(keys, x[[3, 0], h : h + g], atol=1e-5)
    same = np.repeat(batch.positions[:, None], 3, 1)
    equal = kernel(qkv, *places, same, *weights, pages, out)[-2:]
    expected = plain(qkv, *places, *weights, pages, out)[-2:]
    assert all(np.array_equal(a, b) for a, b in zip(equal, expected, strict=True))


@pytest.mark.parametrize("position", [130_001, 1_000_003])
def test_rope_far_out(build, make_batch, position):
    """Positions of long contexts: the argument reduction holds."""
    inv_freq = np.array([1.0, 0.5, 0.01, 1e-4], "float32")
    spec = RopeAppendSpec(
        heads=1, kv_heads=1, head_dim=8, rotary_dim=8, inv_freq=tuple(map(float, inv_freq))
    )
    batch = make_batch([(position, 1, [0] * (position // 16 + 1))])
    qkv = np.random.default_rng(0).standard_normal((1, 3, 8)).astype("float32")
    table = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    pages = np.zeros((1, 2, 1, 16, 8), "float32")
    q = build(KERNELS.rope_append(spec))(qkv, *table, pages, qkv[:, :1].copy())[-1]
    expected = rotated(qkv.astype("float64"), batch.positions, inv_freq, 1.0)
    np.testing.assert_allclose(q, expected[:, :1], atol=3e-6)


HEADS = [
    (8, 4, 8, "float32"),
    (9, 3, 64, "float16"),
    (4, 1, 20, "float32"),
    pytest.param((4, 2, 40, "int8"), marks=pytest.mark.nightly),
    pytest.param((9, 3, 64, "int4"), marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=HEADS, ids=str)
def attend(build, request):
    """((h, g, e, dtype of the cache), the kernel as a function of q, batch and pages)."""
    h, g, e, dtype = request.param
    shape = {"heads": h, "kv_heads": g, "head_dim": e}
    spec = AttentionSpec(**shape, scale=e**-0.5, kv_dtype=dtype, words=dtype in INTEGERS)
    kernel = build(KERNELS.attention(spec))

    def run(q, batch, pages):
        indices = (batch.positions, batch.sequences, batch.query_indptr)
        out = np.full(q.shape, np.nan, "float32")
        return kernel(q, *indices, batch.page_indptr, batch.page_ids, as_words(pages), out)[-1]

    return request.param, run


def values(rng, *shape, dtype="float32"):
    return converted(rng.standard_normal(shape), dtype)


@pytest.mark.by_day("vulkan")
def test_attention_over_a_mixed_batch(attend, make_batch):
    (h, g, e, dtype), run = attend
    rng = np.random.default_rng(e)
    pages = values(rng, 20, 2, g, 16, e, dtype=dtype)
    # Decode rows, one of them several tiles long, a whole prompt, a chunk; pages out of order.
    long = [18, 16, 13, 10, 8, 17, 14, 6, 5]
    batch = make_batch(
        [(33, 1, [7, 2, 19]), (0, 40, [4, 1, 9]), (140, 1, long), (16, 7, [3, 12]), (0, 1, [0])]
    )
    q = values(rng, 50, h, e)
    out = run(q, batch, pages)
    np.testing.assert_allclose(out, reference(q, batch, pages, e**-0.5), atol=3e-6)


@pytest.mark.by_day("metal")
def test_attention_of_a_cut_prompt_has_the_same_bits(attend, make_batch):
    (h, g, e, dtype), run = attend
    rng = np.random.default_rng(3)
    pages, table = values(rng, 16, 2, g, 16, e, dtype=dtype), [5, 0, 3, 8, 2, 11, 14, 6, 1]
    q = values(rng, 140, h, e)
    at_once = run(q, make_batch([(0, 140, table)]), pages)
    other, other_q = (20, 1, [9, 10]), values(rng, 1, h, e)
    for start, stop in pairwise([0, 1, 17, 64, 65, 140]):
        chunk = (start, stop - start, table)
        mixed_q = np.concatenate([other_q, q[start:stop], other_q])
        mixed = run(mixed_q, make_batch([other, chunk, other]), pages)
        assert np.array_equal(mixed[1:-1], at_once[start:stop])
        assert np.array_equal(mixed[0], mixed[-1])


@pytest.mark.by_day("opencl")
def test_stale_memory_has_no_influence(attend, make_batch):
    """Neither what a page holds beyond a row, be it NaN, nor pages of others."""
    (h, g, e, dtype), run = attend
    rng = np.random.default_rng(4)
    pages, q = values(rng, 8, 2, g, 16, e, dtype=dtype), values(rng, 6, h, e)
    batch = make_batch([(18, 1, [6, 1]), (0, 5, [3])])
    clean = run(q, batch, pages)
    for stale in (255, 127, 0) if dtype in INTEGERS else (0.0, 6e4, np.nan, np.inf):
        dirty = np.full(pages.shape, stale, "uint8" if dtype in INTEGERS else pages.dtype)
        dirty = dirty.view(pages.dtype)
        dirty[6], dirty[1, :, :, :3] = pages[6], pages[1, :, :, :3]
        dirty[3, :, :, :5] = pages[3, :, :, :5]
        assert np.array_equal(run(q, batch, dirty), clean)

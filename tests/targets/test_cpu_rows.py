"""RoPE with the append to the cache, norms and SwiGLU on CPUs against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import RMSNormSpec, RopeAppendSpec, SwiGLUSpec
from wherry.targets.kernels.cpu import CpuKernels

from .conftest import machine
from .page_layout import by_token, converted, floats, stored, tolerances

pytestmark = pytest.mark.cpu

ROPE = [  # h, g, e, rotary_dim, eps of the norm, dtype of the cache
    (8, 4, 8, 8, None, "float32"),
    (4, 2, 128, 128, 1e-6, "float16"),
    (9, 3, 64, 32, None, "float32"),
    (9, 3, 32, 32, 1e-5, "float32"),
    (3, 1, 20, 10, 1e-5, "float16"),
    (9, 3, 64, 64, None, "int8"),
    (4, 2, 128, 128, 1e-6, "int8"),
    pytest.param(3, 1, 20, 10, 1e-5, "int8", marks=pytest.mark.nightly),
    (9, 3, 64, 64, None, "int4"),
    (3, 1, 40, 10, 1e-5, "int4"),
]


def by_axes(positions):
    """Positions on the axes of M-RoPE [n, 3] that differ, of those of rows."""
    return np.stack([positions, 3 + positions * 7 % 50, positions // 3], 1).astype("int32")


def rotated(x, positions, inv_freq, scaling, axes=()):
    half = len(inv_freq)
    turns = by_axes(positions)[:, axes] if axes else positions[:, None]
    angle = (turns.astype("float32") * inv_freq).astype("float64")[:, None]
    cos, sin = np.cos(angle) * scaling, np.sin(angle) * scaling
    low, high, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([low * cos - high * sin, high * cos + low * sin, rest], -1)


@pytest.mark.parametrize(("h", "g", "e", "rotary", "eps", "kv_dtype"), ROPE)
@pytest.mark.by_day("8-4-8-8-None", "4-2-128-128-1e-06-int8", "3-1-40-10")
def test_rope_append(any_machine, make_batch, h, g, e, rotary, eps, kv_dtype):
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
        kv_dtype=kv_dtype,
    )
    kernel = any_machine.build(CpuKernels(any_machine.isa).rope_append(spec))
    batch = make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])
    qkv = rng.standard_normal((31, h + 2 * g, e)).astype("float32")
    pages = rng.standard_normal((8, 2, g, 16, e))
    pages = converted(pages, kv_dtype)
    weights = [rng.uniform(0.5, 2, e).astype("float32") for _ in range(2)] if eps else []

    def run(rows, pages):
        table = (batch.page_indptr, batch.page_ids)
        places = (batch.positions[rows], batch.sequences[rows])
        out = np.full((len(qkv[rows]), h, e), np.nan, "float32")
        pages_after, q = kernel(qkv[rows], *places, *table, *weights, stored(pages), out)[-2:]
        return by_token(pages_after), q

    got_pages, got_q = run(slice(None), pages)
    x = qkv.astype("float64")
    if eps:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
        x = np.concatenate([x[:, :h] * weights[0], x[:, h:] * weights[1]], 1)
    x = rotated(x, batch.positions, inv_freq, 1.25)
    np.testing.assert_allclose(got_q, x[:, :h], atol=5e-6)
    expected = floats(pages)
    for i, (position, s) in enumerate(zip(batch.positions, batch.sequences, strict=True)):
        page = batch.page_ids[batch.page_indptr[s] + position // 16]
        expected[page, 0, :, position % 16] = x[i, h : h + g]
        expected[page, 1, :, position % 16] = qkv[i, h + g :]
    assert (np.abs(floats(got_pages) - expected) <= tolerances(expected, kv_dtype)).all()
    untouched = [3, 6]
    assert np.array_equal(got_pages[untouched], pages[untouched])
    # Row by row: the same bits in the cache and in q.
    step = pages
    for i in range(31):
        step, q = run(slice(i, i + 1), step)
        assert np.array_equal(q[0], got_q[i])
    assert np.array_equal(step, got_pages)


@pytest.mark.parametrize("eps", [None, 1e-6])
def test_axes_of_rope(any_machine, make_batch, eps):
    """M-RoPE: each frequency takes one of three positions; if they are equal, with RoPE's bits."""
    h, g, e, axes = 4, 2, 48, (0, 1, 2) * 5 + (0,) * 3
    rng = np.random.default_rng(1)
    inv_freq = (10000.0 ** (-np.arange(18) * 2 / 36)).astype("float32")
    shape = {"heads": h, "kv_heads": g, "head_dim": e, "rotary_dim": 36, "qk_norm_eps": eps}
    shape["inv_freq"] = tuple(map(float, inv_freq))
    kernels = CpuKernels(any_machine.isa)
    plain, kernel = (
        any_machine.build(kernels.rope_append(RopeAppendSpec(**shape, axes=own)))
        for own in ((), axes)
    )
    batch = make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])
    places = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    qkv = rng.standard_normal((31, h + 2 * g, e)).astype("float32")
    pages, out = rng.standard_normal((8, 2, g, 16, e)).astype("float32"), qkv[:, :h].copy()
    weights = [np.ones(e, "float32")] * 2 if eps else []
    own = by_axes(batch.positions)
    got_pages, got_q = kernel(qkv, *places, own, *weights, stored(pages), out)[-2:]
    x = qkv.astype("float64")
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) if eps else x
    x = rotated(x, batch.positions, inv_freq, 1.0, axes)
    np.testing.assert_allclose(got_q, x[:, :h], atol=5e-6)
    keys = by_token(got_pages)[[4, 5], 0, :, [5, 1]]  # of the rows at positions 5 and 33
    np.testing.assert_allclose(keys, x[[3, 0], h : h + g], atol=5e-6)

    same = np.repeat(batch.positions[:, None], 3, 1)
    equal = kernel(qkv, *places, same, *weights, stored(pages), out)[-2:]
    expected = plain(qkv, *places, *weights, stored(pages), out)[-2:]
    assert all(np.array_equal(a, b) for a, b in zip(equal, expected, strict=True))
    step = stored(pages)
    for i in range(31):  # row by row
        row = slice(i, i + 1)
        one = (batch.positions[row], batch.sequences[row], *places[2:], own[row])
        step, q = kernel(qkv[row], *one, *weights, step, out[:1])[-2:]
        assert np.array_equal(q[0], got_q[i])
    assert np.array_equal(step, got_pages)


@pytest.mark.parametrize("position", [130_001, 1_000_003])
@pytest.mark.parametrize("kind", ["avx2", "sse2"])  # with and without FMA, as pages have it
def test_rope_far_out(make_batch, kind, position):
    """Positions of long contexts: the argument reduction holds."""
    inv_freq = np.array([1.0, 0.5, 0.01, 1e-4], "float32")
    spec = RopeAppendSpec(
        heads=1, kv_heads=1, head_dim=8, rotary_dim=8, inv_freq=tuple(map(float, inv_freq))
    )
    here = machine(kind)
    kernel = here.build(CpuKernels(here.isa).rope_append(spec))
    batch = make_batch([(position, 1, [0] * (position // 16 + 1))])
    qkv = np.random.default_rng(0).standard_normal((1, 3, 8)).astype("float32")
    arguments = (batch.positions, batch.sequences, batch.page_indptr, batch.page_ids)
    q = kernel(qkv, *arguments, np.zeros((1, 2, 1, 16, 8), "float32"), qkv[:, :1].copy())[-1]
    expected = rotated(qkv.astype("float64"), batch.positions, inv_freq, 1.0)
    np.testing.assert_allclose(q, expected[:, :1], atol=3e-6)


@pytest.mark.parametrize("d", [5, 40, 64, 172, 2048])
@pytest.mark.by_day("-5", "-172")
def test_norms(any_machine, d):
    rng = np.random.default_rng(d)
    kernels, spec = CpuKernels(any_machine.isa), RMSNormSpec(dim=d, eps=1e-5)
    norm = any_machine.build(kernels.rms_norm(spec))
    add_norm = any_machine.build(kernels.add_rms_norm(spec))
    x, r = rng.standard_normal((2, 300, d)).astype("float32")
    w, empty = rng.standard_normal(d).astype("float32"), np.full((300, d), np.nan, "float32")
    total, y = add_norm(x, r, w, empty, empty)[-2:]
    assert np.array_equal(total, x + r)
    exact = total.astype("float64")
    exact = exact / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y, exact, rtol=2e-6, atol=1e-6)
    assert np.array_equal(norm(total, w, empty)[-1], y)
    assert np.array_equal(norm(total[7:9], w, empty[:2])[-1], y[7:9])


@pytest.mark.parametrize("d", [5, 172, 1024])
def test_swiglu(any_machine, d):
    rng = np.random.default_rng(d)
    kernel = any_machine.build(CpuKernels(any_machine.isa).swiglu(SwiGLUSpec(dim=d)))
    x = (20 * rng.standard_normal((300, 2 * d))).astype("float32")
    x[0, :4] = [0.0, -200.0, 200.0, -88.0]
    y = kernel(x, np.full((300, d), np.nan, "float32"))[-1]
    gate, up = x[:, :d].astype("float64"), x[:, d:].astype("float64")
    with np.errstate(over="ignore"):
        expected = gate / (1 + np.exp(-gate)) * up
    np.testing.assert_allclose(y, expected, rtol=2e-6, atol=1e-30)
    assert np.array_equal(kernel(x[9:10], y[:1] * 0)[-1][0], y[9])

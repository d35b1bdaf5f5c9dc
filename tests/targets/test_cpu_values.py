"""What CPUs write to the cache for a row: values that are normed, keys as values, nothing."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import RopeAppendSpec
from wherry.targets.kernels.cpu import CpuKernels

from .page_layout import by_token, converted, floats, stored, tolerances
from .test_cpu_rows import rotated

EPS = 1e-5
CASES = [  # h, g, e, v_norm, kv, dtype of the cache
    (4, 2, 32, True, "both", "float32"),
    (9, 3, 16, True, "keys", "float16"),
    (8, 2, 32, False, "keys", "float32"),
    (4, 1, 48, True, "keys", "int8"),
    (4, 1, 48, True, "keys", "int4"),
    (3, 1, 20, True, "both", "float32"),
    (4, 2, 32, False, "none", "float32"),
]


@pytest.mark.parametrize(("h", "g", "e", "v_norm", "kv", "kv_dtype"), CASES)
@pytest.mark.by_day("4-1-48-True-keys-int8", "3-1-20", "none")
def test_values(here, make_batch, h, g, e, v_norm, kv, kv_dtype):
    rng = np.random.default_rng(e)
    inv_freq = np.append((10000.0 ** (-np.arange(e // 2 - 1) * 2 / e)), 0.0).astype("float32")
    spec = RopeAppendSpec(
        heads=h,
        kv_heads=g,
        head_dim=e,
        rotary_dim=e,
        inv_freq=tuple(map(float, inv_freq)),
        qk_norm_eps=EPS,
        v_norm=v_norm,
        kv=kv,
        kv_dtype=kv_dtype,
    )
    kernel = here.build(CpuKernels(here.isa).rope_append(spec))
    batch = make_batch([(33, 1, [7, 2, 5]), (3, 30, [4, 1, 0])])
    qkv = rng.standard_normal((31, spec.qkv_heads, e)).astype("float32")
    pages = rng.standard_normal((8, 2, g, 16, e))
    pages = converted(pages, kv_dtype)
    weights = [rng.uniform(0.5, 2, e).astype("float32") for _ in range(2)]

    def run(rows, pages):
        places = (batch.positions[rows], batch.sequences[rows])
        out = np.full((len(qkv[rows]), h, e), np.nan, "float32")
        table = (batch.page_indptr, batch.page_ids)
        pages_after, q = kernel(qkv[rows], *places, *table, *weights, stored(pages), out)[-2:]
        return by_token(pages_after), q

    got_pages, got_q = run(slice(None), pages)
    x = qkv.astype("float64")
    unit = x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS)
    q = rotated(unit[:, :h] * weights[0], batch.positions, inv_freq, 1.0)
    np.testing.assert_allclose(got_q, q, atol=5e-6)
    if kv == "none":
        assert np.array_equal(got_pages, pages)
    else:
        keys = rotated(unit[:, h : h + g] * weights[1], batch.positions, inv_freq, 1.0)
        values = (unit if v_norm else x)[:, -g:]
        expected = floats(pages)
        for i, (position, s) in enumerate(zip(batch.positions, batch.sequences, strict=True)):
            page = batch.page_ids[batch.page_indptr[s] + position // 16]
            expected[page, :, :, position % 16] = keys[i], values[i]
        assert (np.abs(floats(got_pages) - expected) <= tolerances(expected, kv_dtype)).all()
    step = pages
    for i in range(31):  # row by row: the same bits
        step, q = run(slice(i, i + 1), step)
        assert np.array_equal(q[0], got_q[i])
    assert np.array_equal(step, got_pages)

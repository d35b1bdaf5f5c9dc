"""What kernels keep in float16: rounded alike on every device, and never infinite."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels.gpu import emit as e

pytestmark = pytest.mark.gpu
THREADS = 64


def expected(x):
    """NumPy's rounding, but for what is too large or too small."""
    largest = np.float32(65504)
    with np.errstate(over="ignore"):
        y = np.clip(x, -largest, largest).astype("float16")
    y[np.isinf(x)] = x[np.isinf(x)]
    y[np.abs(x) < 2.0**-14] = 0
    return y


def interesting():
    """All float16, the midpoints of two and their neighbours, and numbers of any size."""
    halves = np.arange(2**16, dtype="uint16").view("float16").astype("float32")
    halves = halves[np.isfinite(halves)]
    middles = np.nextafter(halves, np.float32(np.inf))  # of float32
    with np.errstate(over="ignore"):
        grown = (np.sort(halves)[1:] + np.sort(halves)[:-1]) / 2
    near = [np.nextafter(grown, np.float32(s)) for s in (-np.inf, np.inf)]
    rng = np.random.default_rng(0)
    wide = rng.standard_normal(5000) * 10.0 ** rng.uniform(-9, 30, 5000)
    edges = [0.0, -0.0, 65504, 65519, 65520, 65536, 1e38, np.inf, 2.0**-14, 2.0**-24, 1e-40]
    parts = [halves, middles, grown, *near, wide, edges, np.negative(edges)]
    return np.concatenate(parts).astype("float32")


def test_stored_numbers_are_rounded_to_the_nearest(build):
    """What a thread keeps for itself has the bits of what others read from memory."""

    def emit(b, sizes):
        def block(block, thread):
            i = block * THREADS + thread

            def one():
                value = e.let(b["x"][i])
                e.store(b["stored"], value, i)
                e.store(b["known"], e.rounded("float16", value), i)

            e.when(i < sizes["n"], one)

        e.launch(((sizes["n"] + THREADS - 1) // THREADS,), THREADS, block)

    def read(b, sizes):
        def block(block, thread):
            i = block * THREADS + thread
            e.when(i < sizes["n"], lambda: e.store(b["read"], e.load(b["stored"], i), i))

        e.launch(((sizes["n"] + THREADS - 1) // THREADS,), THREADS, block)

    rows = [("x", ("n",), "float32"), ("stored", ("n",), "float16"), ("known", ("n",), "float32")]
    x = interesting()
    nothing = np.full(x.shape, np.nan, "float32")
    _, stored, known = build(e.prim_func(rows, emit))(x, nothing.astype("float16"), nothing)
    assert np.array_equal(stored, expected(x))
    # Of minus zero, too.
    assert np.array_equal(np.signbit(stored), np.signbit(x))
    again = build(e.prim_func([("stored", ("n",), "float16"), ("read", ("n",), "float32")], read))
    assert np.array_equal(again(stored, nothing)[1].view("uint32"), known.view("uint32"))


def test_what_is_no_number_stays_so(build):
    """An error in a row shows in its logits."""

    def emit(b, _):
        e.launch((1,), THREADS, lambda _, t: e.store(b["y"], b["x"][t], t))

    kernel = build(e.prim_func([("x", (64,), "float32"), ("y", (64,), "float16")], emit))
    x = np.full(64, np.nan, "float32")
    assert np.isnan(kernel(x, np.zeros(64, "float16"))[1]).all()


def test_vectors_of_halves(build):
    def emit(b, _):
        def block(_, thread):
            for i, value in enumerate(e.vector(b["x"], thread, 4)):
                e.store(b["y"], value, thread, i)

        e.launch((1,), THREADS, block)

    kernel = build(e.prim_func([("x", (64, 8), "float16"), ("y", (64, 4), "float32")], emit))
    x = np.random.default_rng(1).standard_normal((64, 8)).astype("float16")
    assert np.array_equal(kernel(x, np.zeros((64, 4), "float32"))[1], x[:, 4:])

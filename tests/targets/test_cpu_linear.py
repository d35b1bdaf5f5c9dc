"""Linear and embedding kernels of CPUs against NumPy, and row by row against themselves."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.targets.kernels import EmbeddingSpec, LinearSpec
from wherry.targets.kernels.cpu import CpuKernels

pytestmark = pytest.mark.cpu

SHAPES = [(344, 172), (512, 64), (24, 40), (8, 8)]  # N, K
FORMATS = [("f32", None), ("f16", None), ("q4", "float16"), ("q4", "float32")]


def portable(rng, n, k, scheme, scale_dtype):
    """Stored tensors of a random weight, and what they mean as float32 [n, k]."""
    if scheme != "q4":
        w = rng.standard_normal((n, k)).astype({"f32": "float32", "f16": "float16"}[scheme])
        return [w], w.astype("float32")
    groups = -(-k // 32)
    words = rng.integers(0, 2**32, (n, groups * 4), dtype="uint32")  # noise beyond k, too
    scales = rng.uniform(0.01, 0.1, (n, groups)).astype(scale_dtype)
    nibbles = (words[..., None] >> (4 * np.arange(8, dtype="uint32"))) & 15
    values = nibbles.reshape(n, groups, 32).astype("float32") - 7
    return [words, scales], (values * scales[..., None].astype("float32")).reshape(n, -1)[:, :k]


def packed(machine, linear, stored):
    empty = [np.full(shape, 77, dtype) for shape, dtype in linear.weights]
    return machine.build(linear.pack)(*stored, *empty)[len(stored) :]


def spec_of(n, k, scheme, scale_dtype):
    return LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype)


@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_linear(any_machine, n, k, scheme, scale_dtype):
    rng = np.random.default_rng(n + k)
    linear = CpuKernels(any_machine.isa).linear(spec_of(n, k, scheme, scale_dtype))
    stored, weight = portable(rng, n, k, scheme, scale_dtype)
    weights = packed(any_machine, linear, stored)
    compute = any_machine.build(linear.compute)
    x = rng.standard_normal((31, k)).astype("float32")

    def run(rows):
        return compute(rows, *weights, np.full((len(rows), n), np.nan, "float32"))[-1]

    y, expected = run(x), x.astype("float64") @ weight.T.astype("float64")
    error = np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2))
    int8 = scheme == "q4" and any_machine.isa.dot != "none"
    assert error < (0.01 if int8 else 1e-6)
    # The rows alone, in blocks of all heights, and in another order: the same bits.
    for m in (1, 2, 3, 5, 7, 13):
        for start in range(0, 31 - m, 9):
            assert np.array_equal(run(x[start : start + m]), y[start : start + m])
    order = rng.permutation(31)
    assert np.array_equal(run(x[order]), y[order])


def test_linear_in_parallel(here):
    """A weight large enough for all threads; K * N beyond the threshold in every format."""
    rng = np.random.default_rng(0)
    for scheme, scale_dtype in FORMATS:
        n, k = 1000, 512
        linear = CpuKernels(here.isa).linear(spec_of(n, k, scheme, scale_dtype))
        stored, weight = portable(rng, n, k, scheme, scale_dtype)
        weights = packed(here, linear, stored)
        compute = here.build(linear.compute)
        x = rng.standard_normal((200, k)).astype("float32")
        y = compute(x, *weights, np.zeros((200, n), "float32"))[-1]
        alone = compute(x[150:151], *weights, np.zeros((1, n), "float32"))[-1]
        assert np.abs(y - x @ weight.T).max() < 0.02 * np.abs(y).max()
        assert np.array_equal(alone[0], y[150])


def test_zero_and_large_rows_keep_their_scale(here):
    """A group of zeros and one of large values do not disturb each other."""
    linear = CpuKernels(here.isa).linear(spec_of(16, 64, "q4", "float32"))
    stored, weight = portable(np.random.default_rng(1), 16, 64, "q4", "float32")
    x = np.zeros((2, 64), "float32")
    x[1, :32] = 1e4
    y = here.build(linear.compute)(x, *packed(here, linear, stored), np.ones((2, 16), "float32"))
    assert np.array_equal(y[-1][0], np.zeros(16, "float32"))
    np.testing.assert_allclose(y[-1][1], x[1] @ weight.T, rtol=1e-4)


@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
def test_embedding(here, n, k, scheme, scale_dtype):
    kernels = CpuKernels(here.isa)
    spec = EmbeddingSpec(vocab=n, dim=k, scheme=scheme, scale_dtype=scale_dtype)
    stored, table = portable(np.random.default_rng(2), n, k, scheme, scale_dtype)
    weights = packed(here, kernels.linear(spec.as_linear()), stored)
    tokens = np.array([0, n - 1, n // 2, 3, 3], "int32")
    lookup = here.build(kernels.embedding(spec))
    y = lookup(tokens, *weights, np.zeros((5, k), "float32"))[-1]
    assert np.array_equal(y, table[tokens])

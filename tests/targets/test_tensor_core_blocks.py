"""Block formats of 4 to 8 bits on NVIDIA's tensor cores, run by an emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.quant.scheme import record
from wherry.targets.kernels import EmbeddingSpec, FusedLinearSpec, LinearSpec
from wherry.targets.kernels.gpu import tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import layout

from ..support.random_blocks import random_stored
from .test_tensor_core_linear import HALF, KERNELS, REST, ROWS, SINGLE, build, plan_of

__all__ = ["build"]  # a fixture

# By day a zero point and a minimum of 4 bits, and a scale for each 16 columns.
NIGHTLY = (
    *("Q4_0", "Q4_1", "affine4f16_g32_min", "affine4f16_g64"),
    *("Q5_0", "Q5_1", "Q5_K", "Q8_0", "affine8f16_g64", "affine8f16_g32_min"),
)
NAMES = [
    *("affine4f16_g128", "Q4_K", "Q6_K"),
    *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHTLY),
]
each = pytest.mark.parametrize("name", NAMES)
N, K = 40, 512


def stored_of(name):
    scheme = record(name)
    return scheme, random_stored(scheme, N, K)


def packed_of(build, scheme, stored):
    spec = LinearSpec(out_features=N, in_features=K, **scheme.kernel_spec())
    empty = np.full(layout.size(spec), 77, "uint32")
    return build(layout.pack(spec))(*stored.values(), empty)[-1]


def looked_up(build, scheme, packed, tokens):
    spec = EmbeddingSpec(vocab=N, dim=K, **scheme.kernel_spec())
    empty = np.full((len(tokens), K), np.nan, SINGLE)
    return build(KERNELS.embedding(spec))(tokens, packed, empty)[-1]


@each
def test_embedding(build, name):
    scheme, stored = stored_of(name)
    packed = packed_of(build, scheme, stored)
    tokens = np.array([0, N - 1, 9, 1, 2, 3, 24], "int32")
    wanted = scheme.decode(stored, K)
    # two levels of scales are multiplied and rounded to float16, and so are minimums
    rounded = 2**-10 * np.abs(wanted).max() if "q_sub" in stored else 1e-7
    found = looked_up(build, scheme, packed, tokens)
    np.testing.assert_allclose(found, wanted[tokens], rtol=1e-6, atol=rounded)


@each
def test_linear(build, name):
    scheme, stored = stored_of(name)
    packed = packed_of(build, scheme, stored)
    spec = FusedLinearSpec(out_features=N, in_features=K, x_dtype=HALF, **scheme.kernel_spec())
    kernel = tensor_cores.fused_linear(spec, plan=plan_of(spec, False))
    compute, ((shape, _),) = build(kernel.compute), kernel.scratch
    x = np.random.default_rng(2).standard_normal((ROWS, K)).astype(HALF)

    def run(rows):
        z = np.zeros([len(rows) if d == "m" else d for d in shape], HALF)
        return compute(rows, packed, np.full((len(rows), N), np.nan, SINGLE), z)[-2]

    # the weights that are multiplied are rounded once
    weight = looked_up(build, scheme, packed, np.arange(N, dtype="int32"))
    weight = weight.astype(HALF).astype("float64")
    y, expected = run(x), x.astype("float64") @ weight.T
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < REST[SINGLE]
    for rows in (x[3:4], x[5:9], x[:20], x[30:70]):  # one, a few and many: the same bits
        first = int(np.flatnonzero((x == rows[0]).all(1))[0])
        assert np.array_equal(run(rows), y[first : first + len(rows)])


def test_which_formats_have_tensor_cores():
    own = {"out_features": 48, "in_features": 256}
    with_cores = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "affine8f16_g64")
    # of fewer bits than a packed number, or with scales that float16 does not have
    without = ("Q2_K", "Q3_K", "TQ2_0", "IQ4_XS", "MXFP4", "affine4f32_g64")
    for name in (*with_cores, *without):
        spec = FusedLinearSpec(**own, **record(name).kernel_spec())
        assert (KERNELS.fused_linear(spec).pack is not None) == (name in with_cores), name
        assert (spec.scheme in KERNELS.fast_blocks) == (name in with_cores), name

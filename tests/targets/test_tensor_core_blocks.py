"""Block formats of 2 to 8 bits on NVIDIA's tensor cores, run by an emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.quant.scheme import record
from wherry.targets.kernels import EmbeddingSpec, FusedLinearSpec, LinearSpec
from wherry.targets.kernels.gpu import tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import layout, packing

from ..support.random_blocks import random_stored
from .test_fused_linear import expected
from .test_tensor_core_linear import (
    HALF,
    KERNELS,
    REST,
    ROWS,
    SINGLE,
    WIDE_ROWS,
    build,
    plan_of,
)

__all__ = ["build"]  # a fixture

FLOATS = ("MXFP4", "NVFP4", "FP8_G128", "MXFP8", "FP8_ROW")
# By day a zero point, a minimum, a scale for each 16 columns, a codebook, floats.
NIGHTLY = (
    *("Q4_K", "Q3_K", "IQ1_S", "NVFP4", "MXFP8", "FP8_ROW"),
    *("Q4_0", "Q4_1", "affine4f16_g32_min", "affine4f16_g64"),
    *("Q5_0", "Q5_1", "Q5_K", "Q8_0", "affine8f16_g64", "affine8f16_g32_min"),
    *("IQ4_NL", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"),
    *("Q1_0", "Q2_0", "TQ1_0", "TQ2_0"),
)
NAMES = [
    *("affine4f16_g128", "Q6_K", "Q2_K", "IQ4_XS", "MXFP4", "FP8_G128"),
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
    return build(packing.pack(spec))(*stored.values(), empty)[-1]


def looked_up(build, scheme, packed, tokens):
    spec = EmbeddingSpec(vocab=N, dim=K, **scheme.kernel_spec())
    empty = np.full((len(tokens), K), np.nan, SINGLE)
    return build(KERNELS.embedding(spec))(tokens, packed, empty)[-1]


@each
@pytest.mark.by_day("affine4f16_g128", "IQ4_XS")
def test_embedding(build, name):
    scheme, stored = stored_of(name)
    packed = packed_of(build, scheme, stored)
    tokens = np.array([0, N - 1, 9, 1, 2, 3, 24], "int32")
    expected = scheme.decode(stored, K)
    # two levels of scales are multiplied and rounded to float16, and so are minimums
    rounded = 2**-10 * np.abs(expected).max() if "q_sub" in stored else 1e-7
    relative = 1e-6
    if name in FLOATS:  # exact, but for scales of blocks that are rounded to float16
        rounded, relative = 0, 2**-11 if name == "FP8_G128" else 1e-6
    embedded = looked_up(build, scheme, packed, tokens)
    np.testing.assert_allclose(embedded, expected[tokens], rtol=relative, atol=rounded)


@each
@pytest.mark.by_day("Q6_K", "MXFP4")
def test_linear(build, name):
    check_linear(build, name, False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["Q2_K", "IQ4_XS"])
def test_warpgroups(build, name):
    check_linear(build, name, "groups")


def check_linear(build, name, many):
    scheme, stored = stored_of(name)
    packed = packed_of(build, scheme, stored)
    spec = FusedLinearSpec(out_features=N, in_features=K, x_dtype=HALF, **scheme.kernel_spec())
    kernel = tensor_cores.fused_linear(spec, plan=plan_of(spec, many))
    compute, ((shape, _),) = build(kernel.compute), kernel.scratch
    x = np.random.default_rng(2).standard_normal((ROWS, K)).astype(HALF)

    def run(rows):
        z = np.zeros([len(rows) if d == "m" else d for d in shape], HALF)
        return compute(rows, packed, np.full((len(rows), N), np.nan, SINGLE), z)[-2]

    # the weights that are multiplied are rounded once; those of floats are products of few bits
    weight = looked_up(build, scheme, packed, np.arange(N, dtype="int32"))
    if name == "FP8_G128":
        weight = (weight * 2**12).astype(HALF).astype("float64") / 2**12
    elif name not in FLOATS:
        weight = weight.astype(HALF).astype("float64")
    y, expected = run(x), x.astype("float64") @ weight.T
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < REST[SINGLE]
    for rows in (x[3:4], x[5:9], x[:20], x[30:70]):  # one, a few and many: the same bits
        first = int(np.flatnonzero((x == rows[0]).all(1))[0])
        assert np.array_equal(run(rows), y[first : first + len(rows)])


@pytest.mark.parametrize(
    ("name", "gated", "many"),
    [
        ("NVFP4", True, "groups"),
        ("MXFP4", True, ""),
        pytest.param("FP8_ROW", False, "groups", marks=pytest.mark.nightly),
        pytest.param("MXFP8", True, "groups", marks=pytest.mark.nightly),
        pytest.param("MXFP4", False, "groups", marks=pytest.mark.nightly),
        pytest.param("NVFP4", False, "", marks=pytest.mark.nightly),
        pytest.param("FP8_ROW", True, "", marks=pytest.mark.nightly),
    ],
)
def test_factors_of_rows(build, name, gated, many):
    """Gate and up projection have factors of their own, in every kernel."""
    n, k, scheme = 2 * 48, 576, record(name)
    stored = random_stored(scheme, n, k)
    rng = np.random.default_rng(3)
    stored["q_scale"] = stored["q_scale"] * rng.uniform(0.1, 10, (n, 1)).astype(SINGLE)
    own = {"out_features": n, "in_features": k, "gated": gated, "residual": not gated}
    spec = FusedLinearSpec(x_dtype=HALF, **own, **scheme.kernel_spec())
    packed = build(packing.pack(spec.linear()))(
        *stored.values(), np.full(layout.size(spec.linear()), 77, "uint32")
    )[-1]
    kernel = tensor_cores.fused_linear(spec, plan=plan_of(spec, many))
    compute, ((shape, _),) = build(kernel.compute), kernel.scratch
    x = rng.standard_normal((WIDE_ROWS, k)).astype(HALF)
    r = rng.standard_normal((WIDE_ROWS, spec.width)).astype(SINGLE)

    def run(rows):
        z = np.zeros([len(rows) if d == "m" else d for d in shape], HALF)
        residual = () if gated else (r[rows],)
        empty = np.full((len(rows), spec.width), np.nan, SINGLE)
        return compute(x[rows], packed, *residual, empty, z)[-2]

    y = run(np.arange(WIDE_ROWS))
    exact = expected(spec, x, scheme.decode(stored, k), None, r)
    assert np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2)) < REST[SINGLE]
    for some in ([3], range(5, 9), range(20), range(40), range(41), range(ROWS)):
        assert np.array_equal(run(np.array(some)), y[np.array(some)])


def test_powers_of_two_that_float16_has_not(build):
    """Those of a row may be far from 1; what vanishes is 2^-25 of the row's largest."""
    scheme, stored = stored_of("MXFP4")
    bytes_ = np.full((N, K // 32), 127, np.uint8)
    bytes_[0], bytes_[1], bytes_[2], bytes_[3] = 250, 3, 0, np.arange(K // 32) * 3 + 100
    bytes_[4] = np.arange(K // 32) % 2 * 60 + 90
    stored["q_sub"], stored["q_scale"][0] = bytes_.view("<u4"), 2.0**-20
    packed = packed_of(build, scheme, stored)
    embedded = looked_up(build, scheme, packed, np.arange(N, dtype="int32"))
    expected = scheme.decode(stored, K)
    expected[2] = 0  # below float32's normal numbers
    largest = np.abs(expected).max(1, keepdims=True)
    assert np.array_equal(embedded[[0, 1, 2, 5]], expected[[0, 1, 2, 5]])
    assert (np.abs(embedded - expected) <= 2**-25 * largest).all() and embedded.any(1)[3:].all()


def test_scales_of_blocks_that_float16_has_not(build):
    scheme, stored = stored_of("FP8_G128")
    stored["q_scale"][1], stored["q_scale"][2], stored["q_scale"][3] = 0, 1e-33, 1e30
    stored["q_scale"][4, 0] *= 2.0**-20
    stored["q_scale"][5] = 5e-35
    packed = packed_of(build, scheme, stored)
    embedded = looked_up(build, scheme, packed, np.arange(N, dtype="int32"))
    expected = scheme.decode(stored, K)
    expected[5] = 0  # whose factor is below float32's normal numbers
    rounded = 2**-11 * np.abs(expected) + 2**-25 * np.abs(expected).max(1, keepdims=True)
    assert (np.abs(embedded - expected) <= rounded).all() and embedded.any(1).sum() == N - 2


def test_which_formats_have_tensor_cores():
    own = {"out_features": 48, "in_features": 256}
    with_cores = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "affine8f16_g64")
    with_cores += (*FLOATS, "Q2_K", "Q3_K", "TQ2_0", "IQ4_XS", "IQ1_S")
    without = ("affine4f32_g64", "TCQ3")  # scales that float16 does not have, and a trellis
    for name in (*with_cores, *without):
        spec = FusedLinearSpec(**own, **record(name).kernel_spec())
        assert (KERNELS.fused_linear(spec).pack is not None) == (name in with_cores), name
        assert (spec.scheme in KERNELS.fast_blocks) == (name in with_cores), name

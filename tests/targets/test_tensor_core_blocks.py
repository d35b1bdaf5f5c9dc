"""Block formats of 4 bits on NVIDIA's tensor cores, run by an emulator, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.quant.affine import AffineQuant
from wherry.quant.scheme import record
from wherry.targets.kernels import EmbeddingSpec, FusedLinearSpec, LinearSpec
from wherry.targets.kernels.gpu import tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import layout

from ..support.random_blocks import random_affine, random_blocks
from .test_tensor_core_linear import HALF, KERNELS, REST, ROWS, SINGLE, build, plan_of

__all__ = ["build"]  # a fixture

# By day a zero point and a minimum, with scales of several and of one group of 32.
NAMES = [
    *("affine4f16_g128", "affine4f16_g32_min"),
    *(pytest.param(n, marks=pytest.mark.nightly) for n in ("Q4_0", "Q4_1", "affine4f16_g64")),
]
each = pytest.mark.parametrize("name", NAMES)
N, K = 40, 384


def stored_of(name):
    scheme = record(name)
    if isinstance(scheme, AffineQuant):
        return scheme, random_affine(scheme, N, K)
    return scheme, scheme.split(random_blocks(name, N, K))


def packed_of(build, scheme, stored):
    spec = LinearSpec(out_features=N, in_features=K, **scheme.kernel_spec())
    empty = np.full(layout.size(spec), 77, "uint32")
    return build(layout.pack(spec))(*stored.values(), empty)[-1]


@each
def test_embedding(build, name):
    scheme, stored = stored_of(name)
    packed = packed_of(build, scheme, stored)
    tokens = np.array([0, N - 1, 9, 1, 2, 3, 24], "int32")
    spec = EmbeddingSpec(vocab=N, dim=K, **scheme.kernel_spec())
    y = build(KERNELS.embedding(spec))(tokens, packed, np.full((7, K), np.nan, "float32"))[-1]
    np.testing.assert_allclose(y, scheme.decode(stored, K)[tokens], rtol=1e-6, atol=1e-7)


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
    weight = scheme.decode(stored, K).astype(HALF).astype("float64")
    y, expected = run(x), x.astype("float64") @ weight.T
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < REST[SINGLE]
    for rows in (x[3:4], x[5:9], x[:20], x[30:70]):  # one, a few and many: the same bits
        first = int(np.flatnonzero((x == rows[0]).all(1))[0])
        assert np.array_equal(run(rows), y[first : first + len(rows)])


def test_which_formats_have_tensor_cores():
    own = {"out_features": 48, "in_features": 128}
    for name, whether in (("Q4_0", True), ("Q4_1", True), ("Q4_K", False), ("Q8_0", False)):
        if name == "Q4_K":
            own = own | {"in_features": 256}
        spec = FusedLinearSpec(**own, **record(name).kernel_spec())
        assert (KERNELS.fused_linear(spec).pack is not None) == whether, name
        assert (record(name).kernel_spec()["scheme"] in KERNELS.fast_blocks) == whether
    spec = FusedLinearSpec(**own, **record("affine4f32_g64").kernel_spec())
    assert KERNELS.fused_linear(spec).pack is None

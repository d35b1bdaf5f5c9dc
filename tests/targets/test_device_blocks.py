"""The GPU kernels of block formats on devices, or emulated, against NumPy and bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops import FusedLinearSpec
from wherry.ops.blocks import FORMATS
from wherry.quant.affine import AFFINE, AffineQuant
from wherry.quant.blocks import BLOCKS, FLOATS_8, TERNARIES, TRELLISES
from wherry.quant.scheme import TYPES, record
from wherry.targets.kernels import EmbeddingSpec, LinearSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from ..support import metal
from ..support.random_blocks import random_stored

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})
FEW = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=16384, storage_buffers=8), {})
N = 70
# By day: one level and two, upper bits, floats of 4 and 8 bits, zero points and minimums.
BY_DAY = (
    "TCQ3",
    "Q8_0",
    "Q4_K",
    "Q5_K",
    "NVFP4",
    "FP8_G128",
    "affine4f16_g64",
    "affine4f16_g32_min",
)
EACH = [
    s if s.name in BY_DAY else pytest.param(s, marks=pytest.mark.nightly)
    for s in (*BLOCKS, *TRELLISES, *FLOATS_8, *TERNARIES, *(s for s in AFFINE if s.group))
]
each = pytest.mark.parametrize("scheme", EACH, ids=lambda scheme: scheme.name)


def columns_of(scheme):
    """Some groups of 32 a row; the last block of a zero point is cut."""
    cut = isinstance(scheme, AffineQuant) or scheme in (*FLOATS_8, *TERNARIES)
    return 416 if cut else 512


@pytest.mark.parametrize(
    "name",
    ["q4_k", *(pytest.param(n, marks=pytest.mark.nightly) for n in TYPES if n != "q4_k")],
)
def test_rows_with_a_cut_block(build, name):
    """320 weights are a block of 256 and a quarter of one, as our encoders store them."""
    scheme, k = TYPES[name], 320
    stored = scheme.encode(np.random.default_rng(5).standard_normal((N, k)).astype("float32"))
    weight = scheme.decode(stored)
    compute = build(
        KERNELS.linear(LinearSpec(out_features=N, in_features=k, **scheme.kernel_spec()))
    )
    x = np.eye(k, dtype="float32")
    y = compute(x, *stored.values(), np.full((k, N), np.nan, "float32"))[-1]
    np.testing.assert_allclose(y.T, weight, rtol=1e-5, atol=1e-6)
    one = compute(x[300:301], *stored.values(), np.full((1, N), np.nan, "float32"))[-1]
    assert np.array_equal(one[0], y[300])


@each
@pytest.mark.by_day("opencl-Q4_K", "vulkan-Q5_K", "metal-NVFP4")
def test_linear(build, scheme):
    k = columns_of(scheme)
    spec = LinearSpec(out_features=N, in_features=k, **scheme.kernel_spec())
    compute = build(KERNELS.linear(spec))
    stored = random_stored(scheme, N, k)
    weight = scheme.decode(stored, k).astype("float64")
    rng = np.random.default_rng(3)
    x = rng.standard_normal((21, k)).astype("float32")

    def run(rows):
        return compute(rows, *stored.values(), np.full((len(rows), N), np.nan, "float32"))[-1]

    y, expected = run(x), x @ weight.T
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < 2e-6
    # GEMV and GEMM are different kernels: the same bits.
    for start, stop in ((0, 1), (5, 7), (9, 17), (9, 18)):
        assert np.array_equal(run(x[start:stop]), y[start:stop])


@each
@pytest.mark.by_day("opencl-NVFP4", "vulkan-Q8_0", "metal-affine4f16_g64")
def test_embedding(build, scheme):
    k = columns_of(scheme)
    spec = EmbeddingSpec(vocab=N, dim=k, **scheme.kernel_spec())
    stored = random_stored(scheme, N, k)
    tokens = np.array([0, N - 1, 1, 2, 3, 30, 30], "int32")
    y = build(KERNELS.embedding(spec))(tokens, *stored.values(), np.zeros((7, k), "float32"))[-1]
    # with a minimum, one rounding instead of two
    rtol = 1e-6 if FORMATS[scheme.kernel_spec()["scheme"]].minimum else 0
    np.testing.assert_allclose(y, scheme.decode(stored, k)[tokens], rtol=rtol, atol=rtol)


@pytest.mark.nightly
def test_fused(build):
    """Norm, gate and a residual around a linear of blocks, where launches bind enough tensors."""
    scheme = record("Q4_K")
    n, k = 64, 512
    stored = random_stored(scheme, n, k)
    weight = scheme.decode(stored, k).astype("float64")
    spec = FusedLinearSpec(
        out_features=n, in_features=k, norm_eps=1e-5, gated=True, **scheme.kernel_spec()
    )
    rng = np.random.default_rng(5)
    x = rng.standard_normal((11, k)).astype("float32")
    norm = rng.uniform(0.5, 1.5, k).astype("float32")
    empty = np.full((11, n // 2), np.nan, "float32")
    compute = build(KERNELS.fused_linear(spec).compute)
    y = compute(x, norm, *stored.values(), empty, np.zeros(11, "float32"))[-2]
    z = x / np.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5) * norm
    gate, up = np.split(z @ weight.T, 2, axis=1)
    np.testing.assert_allclose(y, gate / (1 + np.exp(-gate)) * up, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("unit", "bound"), [("simdgroups", 2e-6), ("cooperative_matrices", 6e-4)])
@pytest.mark.parametrize("name", ["Q6_K", "affine4f16_g64"])
@pytest.mark.by_day("Q6_K-simdgroups", "affine4f16_g64-cooperative")
def test_matrix_units(name, unit, bound):
    """Float32 matrices, and float16 ones, to which weights and x are rounded; both emulated."""
    scheme, k = record(name), 256
    limits = GpuLimits(threads_per_block=256, shared_memory_bytes=32768, **{unit: True})
    spec = LinearSpec(out_features=N, in_features=k, **scheme.kernel_spec())
    compute, stored = metal.build(GpuKernels(limits, {}).linear(spec)), random_stored(scheme, N, k)
    x = np.random.default_rng(7).standard_normal((21, k)).astype("float32")
    y = compute(x, *stored.values(), np.full((21, N), np.nan, "float32"))[-1]
    expected = x @ scheme.decode(stored, k).astype("float64").T
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < bound


def test_launches_that_bind_too_many_tensors():
    """Q4_K has five; with x, a norm, y and the norms' inverses a launch would bind nine."""
    own = {"out_features": 64, "in_features": 512, "norm_eps": 1e-5}
    q4_k = record("Q4_K").kernel_spec()
    assert FEW.fused_linear(FusedLinearSpec(**own, **q4_k)) is None
    assert KERNELS.fused_linear(FusedLinearSpec(**own, **q4_k)) is not None
    assert FEW.fused_linear(FusedLinearSpec(**own | {"norm_eps": None}, **q4_k)) is not None

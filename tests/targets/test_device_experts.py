"""Experts on devices, or emulated: against NumPy, and GEMV against GEMM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.ops.blocks import FORMATS
from wherry.targets.kernels import ExpertLinearSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits

from .expert_cases import ROUTES, Bank, arguments, empty, in_blocks, route, slots_of

pytestmark = pytest.mark.gpu
KERNELS = GpuKernels(GpuLimits(threads_per_block=256, shared_memory_bytes=32768), {})
NIGHTLY = pytest.mark.nightly
ROWS = 61  # many slots an expert in all cases


@pytest.mark.parametrize(
    "name",
    ["sigmoid-groups", *(pytest.param(r, marks=NIGHTLY) for r in ("normalized", "sparsemixer"))],
)
def test_route(build, name):
    spec = ROUTES[name]
    rng = np.random.default_rng(len(name))
    n, k = max(ROWS, 6 * spec.experts // spec.top_k), spec.top_k
    logits = (2 * rng.standard_normal((n, spec.experts))).astype("float32")
    logits[7] = 1.5  # all alike: the first are chosen
    bias = rng.uniform(-0.3, 0.3, spec.experts).astype("float32")
    kernel = build(KERNELS.route(spec))

    def run(rows):
        given = [rows, *([bias] if spec.bias else [])]
        outputs = [np.full((len(rows), k), -1, "int32"), np.full((len(rows), k), np.nan, "float32")]
        outputs += [np.full(spec.experts + 1, -1, "int32"), np.full(len(rows) * k, -1, "int32")]
        return kernel(*given, *outputs)[-4:]

    ids, weights, starts, slots = run(logits)
    expected, expected_weights = route(spec, logits, bias)
    assert np.array_equal(ids, expected)
    np.testing.assert_allclose(weights, expected_weights, rtol=2e-5)
    assert all(map(np.array_equal, (starts, slots), slots_of(ids, spec.experts)))
    damaged = logits.copy()
    damaged[11] = np.nan  # only these experts
    some_ids = run(damaged)[0]
    assert ((some_ids >= 0) & (some_ids < spec.experts)).all()
    assert np.array_equal(np.delete(some_ids, 11, 0), np.delete(ids, 11, 0))
    some = run(logits[5:9])  # so few are not sorted
    assert np.array_equal(some[0], ids[5:9]) and np.array_equal(some[1], weights[5:9])


CASES = [
    ExpertLinearSpec(
        experts=6,
        top_k=3,
        out_features=48,
        in_features=64,
        scheme="q4",
        scale_dtype="float16",
        gate="silu",
    ),
    ExpertLinearSpec(
        experts=6,
        top_k=3,
        out_features=72,
        in_features=64,
        scheme="q4",
        scale_dtype="float32",
        combined=True,
        residual=True,
    ),
    ExpertLinearSpec(
        experts=4,
        top_k=2,
        out_features=24,
        in_features=40,
        scheme="f32",
        gate="clamped",
        bias=True,
    ),
    ExpertLinearSpec(
        experts=4, top_k=2, out_features=70, in_features=44, scheme="f32", combined=True, bias=True
    ),
    ExpertLinearSpec(
        experts=3,
        top_k=3,
        out_features=40,
        in_features=32,
        scheme="q8",
        scale_dtype="float16",
        routed=False,
    ),
]


@pytest.mark.parametrize(
    "spec",
    [pytest.param(s, marks=NIGHTLY if s.scheme == "f32" else ()) for s in CASES],
    ids=lambda s: f"{s.out_features}x{s.in_features}",
)
def test_expert_linear(build, spec):
    run, y = expert_linear(build, KERNELS, spec)
    # GEMV and GEMM are different kernels: the same bits.
    for some in (slice(0, 1), slice(4, 9), np.random.default_rng(1).permutation(ROWS)):
        assert np.array_equal(run(some), y[some])


# Block formats by day: two levels with minimums and upper bits, floats, and zero points.
BY_DAY = ("q5_k", "mxfp4", "affine4f16_g64")
BLOCKS = [n if n in BY_DAY else pytest.param(n, marks=NIGHTLY) for n in sorted(FORMATS)]
OF_BLOCKS = (
    ExpertLinearSpec(
        experts=3, top_k=2, out_features=24, in_features=256, scheme="f32", gate="silu", bias=True
    ),
    ExpertLinearSpec(
        experts=3,
        top_k=2,
        out_features=40,
        in_features=512,
        scheme="f32",
        combined=True,
        residual=True,
    ),
)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize(
    "spec", [OF_BLOCKS[1], pytest.param(OF_BLOCKS[0], marks=NIGHTLY)], ids=("combined", "gated")
)
def test_blocks(build, spec, name):
    run, y = expert_linear(build, KERNELS, in_blocks(spec, name), 1e-5)
    for some in (slice(0, 1), slice(4, 9)):
        assert np.array_equal(run(some), y[some])


def test_launches_that_bind_too_many_tensors():
    """Q4_K has five; with x, ids, weights and y a launch would bind nine."""
    few = GpuKernels(replace(KERNELS.limits, storage_buffers=8), {})
    assert few.expert_linear(in_blocks(replace(OF_BLOCKS[1], residual=False), "q4_k")) is None
    assert few.expert_linear(in_blocks(OF_BLOCKS[1], "q6_k")) is None
    assert few.expert_linear(in_blocks(replace(OF_BLOCKS[1], residual=False), "q6_k")) is not None
    assert "q4_k" not in few.expert_blocks and "q6_k" in few.expert_blocks


def expert_linear(build, kernels, spec, bound=3e-6):
    """What computes some of the rows, and all of them, which are right."""
    rng = np.random.default_rng(spec.out_features)
    kernel = kernels.expert_linear(spec)
    compute = build(kernel.compute if spec.combined else kernel)
    bank = Bank.of(rng, spec)
    ids = np.array([np.sort(rng.permutation(spec.experts)[: spec.top_k]) for _ in range(ROWS)])
    ids = ids.astype("int32")
    shares = rng.uniform(0.1, 1, ids.shape).astype("float32")
    each = 1 if spec.shared_rows else spec.top_k  # rows of x
    x = rng.standard_normal((ROWS, each, spec.in_features)).astype("float32")
    residual = rng.standard_normal((ROWS, spec.out_features)).astype("float32")

    def run(some):
        n = len(ids[some])
        given = arguments(spec, bank, x[some].reshape(n * each, -1), ids[some], shares[some])
        scratch = np.zeros((n * spec.top_k, spec.out_features), "float32")
        given += [*bank.stored, *([residual[some]] if spec.residual else [])]
        inputs = [*given, empty(spec, n), *([scratch] if spec.combined else [])]
        return compute(*inputs)[len(given)].reshape(n, -1)

    y = run(slice(None))
    expected = bank.expected(x.reshape(ROWS * each, -1), ids, shares).reshape(ROWS, -1)
    expected = expected + residual if spec.residual else expected
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < bound
    return run, y

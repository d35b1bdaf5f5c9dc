"""Experts on CPUs: the choice and the linears against NumPy, and row by row against themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.targets.kernels import ExpertLinearSpec
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.kernels.cpu.block_layout import SUPPORTED

from .conftest import machine as named_machine
from .expert_cases import ROUTES, Bank, arguments, empty, in_blocks, route, slots_of
from .test_cpu_linear import packed

pytestmark = pytest.mark.cpu


COMMON = ("normalized", "sigmoid-groups", "sparsemixer")


@pytest.mark.parametrize(
    "name", [pytest.param(r, marks=() if r in COMMON else pytest.mark.nightly) for r in ROUTES]
)
def test_route(here, name):
    spec = ROUTES[name]
    rng = np.random.default_rng(len(name))
    logits = (2 * rng.standard_normal((33, spec.experts))).astype("float32")
    logits[7] = 1.5  # all alike: the first are chosen
    bias = rng.uniform(-0.3, 0.3, spec.experts).astype("float32")
    kernel = here.build(CpuKernels(here.isa).route(spec))

    def run(rows):
        n, k = len(rows), spec.top_k
        ids, slots = np.full((n, k), -1, "int32"), np.full(n * k, -1, "int32")
        starts = np.full(spec.experts + 1, -1, "int32")
        given = [rows, *([bias] if spec.bias else [])]
        return kernel(*given, ids, np.full((n, k), np.nan, "float32"), starts, slots)[-4:]

    ids, weights, starts, slots = run(logits)
    expected, expected_weights = route(spec, logits, bias)
    assert np.array_equal(ids, expected)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-5)
    assert all(map(np.array_equal, (starts, slots), slots_of(ids, spec.experts)))
    damaged = logits.copy()
    damaged[11], damaged[32] = np.nan, np.inf  # only these experts
    others = [i for i in range(33) if i not in (11, 32)]
    some_ids = run(damaged)[0]
    assert ((some_ids >= 0) & (some_ids < spec.experts)).all()
    assert np.array_equal(some_ids[others], ids[others])
    for start, stop in ((0, 1), (7, 8), (20, 33)):
        some = run(logits[start:stop])
        assert np.array_equal(some[0], ids[start:stop])
        assert np.array_equal(some[1], weights[start:stop])


SPECS = [
    ExpertLinearSpec(
        experts=6, top_k=3, out_features=48, in_features=64, scheme="f32", gate="silu"
    ),
    ExpertLinearSpec(
        experts=6, top_k=3, out_features=40, in_features=44, scheme="f32", combined=True
    ),
    ExpertLinearSpec(
        experts=4, top_k=2, out_features=24, in_features=40, scheme="f32", gate="clamped", bias=True
    ),
    ExpertLinearSpec(
        experts=4, top_k=2, out_features=70, in_features=32, scheme="f32", combined=True, bias=True
    ),
    # Large enough for several threads, and strips.
    ExpertLinearSpec(
        experts=5, top_k=2, out_features=320, in_features=512, scheme="f32", combined=True
    ),
    ExpertLinearSpec(
        experts=3, top_k=3, out_features=40, in_features=32, scheme="f32", routed=False
    ),
]
FORMATS = [("f32", None), ("f16", None), ("q4", "float16"), ("q8", "float32")]
NIGHTLY = pytest.mark.nightly
# All shapes in 4 bits, one in every other format.
EVERY = [
    pytest.param(spec, *form, marks=() if form[0] == "q4" or spec in SPECS[1:2] else NIGHTLY)
    for spec in SPECS
    for form in FORMATS
]


@pytest.mark.parametrize(("spec", "scheme", "scale_dtype"), EVERY)
@pytest.mark.by_day("spec2", "spec5", "spec7")
def test_expert_linear(here, spec, scheme, scale_dtype):
    check(here, replace(spec, scheme=scheme, scale_dtype=scale_dtype))


@pytest.mark.nightly
@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.parametrize("spec", SPECS[:2], ids=lambda s: f"{s.out_features}x{s.in_features}")
def test_expert_linear_of_each_instruction_set(any_machine, spec, scheme, scale_dtype):
    check(any_machine, replace(spec, scheme=scheme, scale_dtype=scale_dtype))


# Block formats by day: two levels with minimums, halves of a group with floats, and zero points.
BY_DAY = ("q4_k", "nvfp4", "affine4f16_g128")
OF_BLOCKS = (
    ExpertLinearSpec(
        experts=4, top_k=2, out_features=48, in_features=256, scheme="f32", gate="silu", bias=True
    ),
    ExpertLinearSpec(
        experts=5, top_k=3, out_features=40, in_features=512, scheme="f32", combined=True
    ),
)


BLOCKS = [
    pytest.param(
        spec, name, marks=() if name in BY_DAY and (spec.combined or name == "q4_k") else NIGHTLY
    )
    for name in sorted(SUPPORTED)
    for spec in OF_BLOCKS
]


@pytest.mark.parametrize(("spec", "name"), BLOCKS)
@pytest.mark.by_day("spec1-", "spec82")
def test_blocks(here, spec, name):
    check(here, in_blocks(spec, name))


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_DAY)
@pytest.mark.parametrize("isa", ["avx512", "avxvnni", "avx2", "ssse3"])
def test_blocks_of_each_instruction_set(isa, name):
    check(named_machine(isa), in_blocks(OF_BLOCKS[1], name))


def test_blocks_without_a_dot_product():
    kernels = CpuKernels(named_machine("sse2").isa)
    assert kernels.expert_linear(in_blocks(OF_BLOCKS[1], "q4_k")) is None


@pytest.mark.parametrize("spec", SPECS[:1], ids=lambda s: f"{s.out_features}x{s.in_features}")
def test_float_activations(here, spec):
    check(here, replace(spec, scheme="q4", scale_dtype="float16"), "float")


@pytest.mark.parametrize("name", ("q4_k", "q8_0"))
@pytest.mark.by_day("q4_k")
def test_blocks_with_float_activations(here, name):
    check(here, in_blocks(OF_BLOCKS[1], name), "float")


def check(machine, spec, activations="int8"):
    rng = np.random.default_rng(spec.out_features)
    linear = CpuKernels(machine.isa, activations).expert_linear(spec)
    bank = Bank.of(rng, spec)
    weights = packed(machine, linear, bank.stored)
    compute = machine.build(linear.compute)
    rows = 37
    ids = np.array([np.sort(rng.permutation(spec.experts)[: spec.top_k]) for _ in range(rows)])
    ids = ids.astype("int32")
    ids[20:, 0] = np.minimum(ids[20:, 0], 0)  # one that many have, and tiles of all heights
    shares = rng.uniform(0.1, 1, ids.shape).astype("float32")
    own = rows if spec.shared_rows else rows * spec.top_k
    x = rng.standard_normal((own, spec.in_features)).astype("float32")
    each = 1 if spec.shared_rows else spec.top_k  # rows of x
    rows_per_token = 1 if spec.combined else spec.top_k  # rows of y

    def run(some):
        given = x.reshape(rows, each, -1)[some].reshape(-1, spec.in_features)
        rows_per_token = arguments(spec, bank, given, ids[some], shares[some])
        return compute(*rows_per_token, *weights, empty(spec, len(ids[some])))[-1]

    y, expected = run(slice(None)), bank.expected(x, ids, shares)
    error = np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2))
    rounded = activations == "int8" and machine.isa.dot != "none"
    int8 = spec.scheme not in ("f32", "f16") and rounded
    assert error < (0.02 if int8 else 2e-6)
    at_once = y.reshape(rows, rows_per_token, -1)
    # In any company, and in another order: the same bits.
    for some in (slice(0, 1), slice(3, 5), slice(20, 37), rng.permutation(rows)):
        again = run(some)
        assert np.array_equal(again.reshape(-1, rows_per_token, spec.width), at_once[some])

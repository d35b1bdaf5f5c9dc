"""Linears and embeddings of CPUs whose weights are in the block formats of others."""

from __future__ import annotations

import numpy as np
import pytest

from wherry.ops.blocks import FORMATS
from wherry.quant.affine import AFFINE
from wherry.quant.blocks import BLOCKS, TERNARIES, TRELLISES
from wherry.quant.scheme import TYPES, record
from wherry.targets.kernels import EmbeddingSpec, LinearSpec
from wherry.targets.kernels.cpu import CpuKernels
from wherry.targets.kernels.cpu.block_layout import SUPPORTED

from ..support.random_blocks import block_size, random_blocks, random_stored, random_ternary
from .conftest import machine as named_machine

pytestmark = pytest.mark.cpu

N, K = 40, 512
# One scheme of others' zero points and minimums for each dtype, group and number of bits.
BY_DAY = ("affine4f16_g128", "affine4f32_g64_min", "affine8f16_g32", "affine8f16_g64_min")
# Codebooks, of which NVFP4 runs by day, and ternary weights, of which BitNet's do.
OTHERS = (
    *("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS"),
    *("MXFP4", "TQ1_0", "TQ2_0"),
)
SCHEMES = [
    *(
        pytest.param(s, marks=pytest.mark.nightly if s.name in OTHERS else ())
        for s in BLOCKS
        if s.name.lower() in SUPPORTED
    ),
    *TERNARIES,
    *TRELLISES,
    *(
        s if s.name in BY_DAY else pytest.param(s, marks=pytest.mark.nightly)
        for s in AFFINE
        if s.group
    ),
]


def nightly(*names):
    return [pytest.param(name, marks=pytest.mark.nightly) for name in names]


MACHINES = ["avx512vnni", "avx2", *nightly("avx512", "avxvnni", "ssse3")]
VBMI = [pytest.param("avx512vbmi", scheme, id=f"avx512vbmi-{scheme.name}") for scheme in TRELLISES]
each = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.name)


def stored_of(scheme):
    """Random stored tensors."""
    return scheme.split(raw(scheme)) if scheme in BLOCKS else random_stored(scheme, N, K)


def packed(machine, linear, stored):
    empty = [np.full(shape, 77, dtype) for shape, dtype in linear.weights]
    return machine.build(linear.pack)(*stored.values(), *empty)[len(stored) :]


def linear_of(machine, scheme, activations="int8"):
    spec = LinearSpec(out_features=N, in_features=K, **scheme.kernel_spec())
    return CpuKernels(machine.isa, activations).linear(spec)


def raw(scheme):
    """Random rows; the first have the largest and the smallest integers and group scales."""
    arrays = random_blocks(scheme.name, N, K)
    at_end = {"Q2_K": slice(80, 84), "Q3_K": slice(108, 110), "Q6_K": slice(208, 210)}
    at_end |= {"TQ1_0": slice(52, 54), "TQ2_0": slice(64, 66)}
    at_end["IQ1_M"] = slice(48, 56)
    at_end |= {"MXFP4": slice(0, 1), "NVFP4": slice(0, 4)}
    two = scheme.name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K")
    kept = at_end.get(scheme.name, slice(0, 4 if two else 2))
    _, each = block_size(scheme.name)
    for row, byte in ((0, 0xFF), (1, 0x00), (2, 0x80), (3, 0x7F)):
        blocks = arrays[row].reshape(-1, each)
        scales = blocks[:, kept].copy()
        blocks[:] = byte
        blocks[:, kept] = scales
    return arrays


@pytest.mark.parametrize(("name", "scheme"), VBMI)
def test_lookups_in_a_table_of_64_bytes(name, scheme):
    check_linear(named_machine(name), scheme)


@each
@pytest.mark.parametrize("name", ["avx512vnni", *nightly("avx2", "avx512", "avxvnni", "ssse3")])
def test_linear(name, scheme):
    check_linear(named_machine(name), scheme)


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0", "IQ2_S", "TCQ3"])
@pytest.mark.by_day("Q4_K", "TCQ3")
def test_linear_with_signed_operands(name):
    check_linear(named_machine("avx2"), record(name))


@each
@pytest.mark.parametrize("name", ["avx512vnni", *nightly("avx2", "avx512", "avxvnni", "ssse3")])
def test_linear_with_float_activations(name, scheme):
    check_linear(named_machine(name), scheme, "float")


@pytest.mark.parametrize("name", ["Q4_K", "Q6_K", "Q8_0", "IQ2_S", "TCQ3"])
def test_linear_with_float_activations_and_signed_operands(name):
    check_linear(named_machine("avx2"), record(name), "float")


def check_linear(machine, scheme, activations="int8"):
    stored = stored_of(scheme)
    weight = scheme.decode(stored).astype("float64")
    linear = linear_of(machine, scheme, activations)
    weights, compute = packed(machine, linear, stored), machine.build(linear.compute)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((19, K)).astype("float32")
    x[:2], x[2:4] = 1.0, -1.0  # the largest sums there are

    def run(rows):
        return compute(rows, *weights, np.full((len(rows), N), np.nan, "float32"))[-1]

    y, expected = run(x), x.astype("float64") @ weight.T
    np.testing.assert_allclose(y[:4], expected[:4], rtol=2e-5, atol=1e-4)
    error = np.sqrt(np.mean((y[4:] - expected[4:]) ** 2) / np.mean(expected[4:] ** 2))
    assert error < (0.01 if activations == "int8" else 2e-6)
    # The rows alone, in blocks of all heights, and in another order: the same bits.
    for m in (1, 3, 7):
        for start in range(0, 19 - m, 5):
            assert np.array_equal(run(x[start : start + m]), y[start : start + m])
    order = rng.permutation(19)
    assert np.array_equal(run(x[order]), y[order])


@pytest.mark.parametrize("name", MACHINES)
def test_rows_that_a_model_has_rounded_are_not_rounded_again(name):
    """Integers of 8 bits times a power of two, a row each: BitNet's activations."""
    (scheme,), machine = TERNARIES, named_machine(name)
    stored = random_ternary(scheme, N, K)
    linear = linear_of(machine, scheme)
    rng = np.random.default_rng(2)
    most = np.repeat(rng.integers(1, 128, (9, K // 32)), 32, axis=1)  # of a group
    x = rng.integers(-most, most + 1) * 2.0 ** rng.integers(-20, 5, (9, 1))
    weights, out = packed(machine, linear, stored), np.full((9, N), np.nan, "float32")
    y = machine.build(linear.compute)(x.astype("float32"), *weights, out)[-1]
    expected = x @ scheme.decode(stored).astype("float64").T
    bound = 1e-6 * np.abs(expected).max(1, keepdims=True)
    assert (np.abs(y - expected) <= bound).all()


@each
@pytest.mark.by_day("Q8_0", "Q4_K", "TCQ2", "affine4f16")
def test_embedding(scheme):
    machine = named_machine("avx2")
    spec = EmbeddingSpec(vocab=N, dim=K, **scheme.kernel_spec())
    stored = stored_of(scheme)
    weights = packed(machine, linear_of(machine, scheme), stored)
    tokens = np.array([0, N - 1, 1, 2, 3, 20, 20], "int32")
    lookup = machine.build(CpuKernels(machine.isa).embedding(spec))
    y = lookup(tokens, *weights, np.zeros((7, K), "float32"))[-1]
    # with a minimum, one rounding instead of two
    rtol = 1e-6 if FORMATS[scheme.kernel_spec()["scheme"]].minimum else 0
    np.testing.assert_allclose(y, scheme.decode(stored)[tokens], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["avx512vnni", pytest.param("ssse3", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("scheme", TYPES.values(), ids=list(TYPES))
def test_rows_with_a_cut_block(name, scheme):
    """576 weights are two blocks of 256 and a quarter of one, as our encoders store them."""
    machine, columns = named_machine(name), 576
    rng = np.random.default_rng(5)
    stored = scheme.encode(rng.standard_normal((N, columns)).astype("float32"))
    weight = scheme.decode(stored)
    spec = LinearSpec(out_features=N, in_features=columns, **scheme.kernel_spec())
    linear = CpuKernels(machine.isa).linear(spec)
    weights = packed(machine, linear, stored)
    x = np.zeros((columns, columns), "float32")  # one element a row: no rounding of others
    np.fill_diagonal(x, 1.0)
    out = np.full((columns, N), np.nan, "float32")
    y = machine.build(linear.compute)(x, *weights, out)[-1]
    np.testing.assert_allclose(y.T, weight, rtol=1e-5, atol=1e-5)


def test_instruction_sets_without_kernels():
    machine = named_machine("sse2")
    assert CpuKernels(machine.isa).blocks == frozenset()
    assert linear_of(machine, BLOCKS[0]) is None

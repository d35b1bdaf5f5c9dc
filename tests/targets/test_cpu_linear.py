"""Linear and embedding kernels of CPUs against NumPy, and row by row against themselves."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import tvm
from tvm.target import Target

from wherry.ops import ActivationSpec, BiasedLinearSpec
from wherry.targets.kernels import EmbeddingSpec, LinearSpec
from wherry.targets.kernels.cpu import CpuKernels, isa_from_features
from wherry.targets.kernels.cpu.quantized_linear import rows_together

from .conftest import machine as named_machine

pytestmark = pytest.mark.cpu

SHAPES = [  # N, K
    *((344, 172), (80, 36), (8, 8)),
    *(pytest.param(*shape, marks=pytest.mark.nightly) for shape in ((512, 64), (24, 40))),
]
INTEGERS = [("q4", "float16"), ("q4", "float32"), ("q8", "float16")]
FORMATS = [("f32", None), ("f16", None), *INTEGERS]


def portable(rng, n, k, scheme, scale_dtype):
    """Stored tensors of a random weight, and what they mean as float32 [n, k]."""
    if scheme in ("f32", "f16"):
        w = rng.standard_normal((n, k)).astype({"f32": "float32", "f16": "float16"}[scheme])
        return [w], w.astype("float32")
    groups, bits = -(-k // 32), int(scheme[1:])
    scales = rng.uniform(0.01, 0.1, (n, groups)).astype(scale_dtype)
    # Noise beyond k, too.
    integers = rng.integers(0, {4: 16, 8: 255}[bits], (n, groups * bits, 32 // bits), "uint32")
    words = (integers << (bits * np.arange(32 // bits, dtype="uint32"))).sum(-1, dtype="uint32")
    values = integers.reshape(n, groups, 32).astype("float32") - {4: 7, 8: 127}[bits]
    return [words, scales], (values * scales[..., None].astype("float32")).reshape(n, -1)[:, :k]


def packed(machine, linear, stored):
    empty = [np.full(shape, 77, dtype) for shape, dtype in linear.weights]
    return machine.build(linear.pack)(*stored, *empty)[len(stored) :]


def spec_of(n, k, scheme, scale_dtype):
    return LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype)


@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
@pytest.mark.by_day("344-172-q4-float16", "80-36-f16", "8-8-q8", "8-8-f32")
def test_linear(any_machine, n, k, scheme, scale_dtype):
    check_linear(any_machine, n, k, scheme, scale_dtype)


@pytest.mark.parametrize("scheme", ["q4", "q8"])
@pytest.mark.parametrize(("n", "k"), SHAPES[::3])
def test_integer_linear_of_each_instruction_set(more_machines, n, k, scheme):
    check_linear(more_machines, n, k, scheme, "float16")


def check_linear(any_machine, n, k, scheme, scale_dtype):
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
    int8 = scheme in ("q4", "q8") and any_machine.isa.dot != "none"
    assert error < (0.01 if int8 else 1e-6)
    # The rows alone, in blocks of all heights, and in another order: the same bits.
    for m in (1, 2, 3, 5, 7, 13):
        for start in range(0, 31 - m, 9):
            assert np.array_equal(run(x[start : start + m]), y[start : start + m])
    order = rng.permutation(31)
    assert np.array_equal(run(x[order]), y[order])


@pytest.mark.parametrize(("scheme", "largest"), [("q4", 0xFFFFFFFF), ("q8", 0xFEFEFEFE)])
def test_all_int8_dot_products_give_the_same_bits(int8_machines, scheme, largest):
    """Extreme weights and activations too: nothing saturates."""
    rng = np.random.default_rng(3)
    n, k = 40, 96
    stored, _ = portable(rng, n, k, scheme, "float32")
    stored[0][:8] = largest
    stored[0][8:16] = 0  # the smallest
    x = rng.standard_normal((13, k)).astype("float32")
    x[:2] = 1.0
    x[2:4] = -1.0
    results = []
    for machine in int8_machines:
        linear = CpuKernels(machine.isa).linear(spec_of(n, k, scheme, "float32"))
        weights = packed(machine, linear, stored)
        results.append(machine.build(linear.compute)(x, *weights, np.zeros((13, n), "float32"))[-1])
    for result in results[1:]:
        assert np.array_equal(result, results[0])
    # Rows of equal activations and of equal weights: the largest sums there are.
    high, low = {"q4": (8, -7), "q8": (127, -127)}[scheme]
    sums = stored[1].sum(1)
    np.testing.assert_allclose(results[0][0, :8], high * 32 * sums[:8], rtol=1e-5)
    np.testing.assert_allclose(results[0][2, 8:16], -low * 32 * sums[8:16], rtol=1e-5)


@pytest.mark.parametrize("scheme", ["q4", "q8"])
def test_float_activations(int8_machines, scheme):
    """Exact up to float32, row by row the same bits, and those on every machine."""
    rng = np.random.default_rng(8)
    stored, weight = portable(rng, 80, 72, scheme, "float16")
    x = rng.standard_normal((13, 72)).astype("float32")
    results = []
    for machine in int8_machines:
        kernels = CpuKernels(machine.isa, activations="float")
        linear = kernels.linear(spec_of(80, 72, scheme, "float16"))
        weights, compute = packed(machine, linear, stored), machine.build(linear.compute)
        results.append(compute(x, *weights, np.zeros((13, 80), "float32"))[-1])
        for row in range(13):
            alone = compute(x[row : row + 1], *weights, np.zeros((1, 80), "float32"))[-1]
            assert np.array_equal(alone[0], results[-1][row])
    expected = x.astype("float64") @ weight.T.astype("float64")
    assert np.abs(results[0] - expected).max() < 2e-6 * np.abs(expected).max()
    for result in results[1:]:
        assert np.array_equal(result, results[0])


@pytest.mark.by_day("avx512", "avxvnni", "avx2float")
def test_float16_scales_are_converted_exactly(more_machines):
    """Subnormal and negative ones too: the bits are those of the same scales as float32."""
    rng = np.random.default_rng(4)
    stored, _ = portable(rng, 32, 64, "q4", "float16")
    stored[1][:, 0] = rng.uniform(-6e-5, 6e-5, 32).astype("float16")
    x = rng.standard_normal((3, 64)).astype("float32")
    results = []
    for dtype in ("float16", "float32"):
        linear = CpuKernels(more_machines.isa).linear(spec_of(32, 64, "q4", dtype))
        weights = packed(more_machines, linear, [stored[0], stored[1].astype(dtype)])
        compute = more_machines.build(linear.compute)
        results.append(compute(x, *weights, np.zeros((3, 32), "float32"))[-1])
    assert np.array_equal(*results)


@pytest.mark.parametrize("scheme", ["q4", pytest.param("q8", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("cpu", "arch", "instruction", "absent"),
    [
        ("alderlake", "x86_64", r"\{vex\}\s+vpdpbusd\s.*%ymm", r"zmm|[xy]mm(1[6-9]|2\d|3\d)"),
        ("haswell", "x86_64", r"vpmaddubsw\s.*%ymm", r"zmm|vpdpbusd"),
        ("x86-64-v2", "x86_64", r"\spmaddubsw\s.*%xmm", r"ymm|call\w*\s+__extendhfsf2"),
        ("cortex-x2", "aarch64", r"\su?smmla\s", r"\ssmlal\s"),
        ("cortex-a76", "aarch64", r"\ssdot\s.*\.4b\[\d\]", r"\ssmlal\s|mmla\s"),
        ("cortex-a72", "aarch64", r"\ssmlal\s", r"\ssdot\s"),
    ],
)
@pytest.mark.by_day("haswell", "cortex-a76")
def test_code_for_other_machines(cpu, arch, instruction, absent, scheme):
    """The dot product is there, and nothing that such a CPU lacks."""
    target = Target({"kind": "llvm", "mcpu": cpu, "mtriple": f"{arch}-unknown-linux-gnu"})
    isa = isa_from_features(tvm.target.codegen.llvm_get_cpu_features(target))
    compute = CpuKernels(isa).linear(spec_of(32, 64, scheme, "float16")).compute
    module = tvm.IRModule({"kernel": compute.with_attr("global_symbol", "kernel")})
    code = tvm.compile(module, target=target).mod.inspect_source("asm")
    assert re.search(instruction, code)
    assert not re.search(absent, code)


def test_what_an_instruction_set_uses():
    def dot(*features):
        return isa_from_features(features).dot

    v3 = ("ssse3", "avx2", "fma")
    v4 = (*v3, "avx512f", "avx512bw", "avx512vl")
    assert [dot(*v4, "avx512vnni"), dot(*v4), dot(*v3, "avxvnni"), dot(*v3)] == [
        "vnni512",
        "avx2",
        "avxvnni",
        "avx2",
    ]
    assert [dot("ssse3"), dot("sse2"), dot()] == ["ssse3", "none", "none"]
    assert [dot("neon", "dotprod", "i8mm"), dot("asimd", "asimddp", "i8mm")] == ["i8mm"] * 2
    assert dot("neon", "i8mm") == "neon"  # single rows would lack the dot product
    assert [dot("neon", "dotprod"), dot("asimd", "asimddp"), dot("neon")] == [
        "dotprod",
        "dotprod",
        "neon",
    ]


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
    x[1, :32] = 127 * 64  # nothing is rounded: scales of activations are powers of two
    y = here.build(linear.compute)(x, *packed(here, linear, stored), np.ones((2, 16), "float32"))
    assert np.array_equal(y[-1][0], np.zeros(16, "float32"))
    np.testing.assert_allclose(y[-1][1], x[1] @ weight.T, rtol=1e-4)


@pytest.mark.parametrize("machine", ["avx512vnni", "avx512", "avxvnni", "avx2", "ssse3"])
def test_activations_of_8_bit_weights_use_all_of_their_8_bits(machine):
    """Integers up to 127 times anything keep their values: a power of two would lose a bit."""
    machine = named_machine(machine)
    linear = CpuKernels(machine.isa).linear(spec_of(16, 64, "q8", "float32"))
    rng = np.random.default_rng(1)
    stored, weight = portable(rng, 16, 64, "q8", "float32")
    x = rng.integers(-127, 128, (5, 64)).astype("float32")
    x[:, ::32] = 127
    x *= np.array([[0.3], [0.7], [1e-3], [5e4], [1]], "float32")
    y = machine.build(linear.compute)(
        x, *packed(machine, linear, stored), np.ones((5, 16), "float32")
    )[-1]
    expected = x.astype("float64") @ weight.T.astype("float64")
    assert np.abs(y - expected).max(1) / np.abs(expected).max(1) == pytest.approx(0, abs=1e-6)


def test_rows_of_one_block_are_those_of_the_next(here):
    """Long rows go through the weights 64 at a time."""
    linear = CpuKernels(here.isa).linear(spec_of(16, 8192, "q4", "float16"))
    rng = np.random.default_rng(4)
    stored, _ = portable(rng, 16, 8192, "q4", "float16")
    weights, compute = packed(here, linear, stored), here.build(linear.compute)
    x = rng.standard_normal((70, 8192)).astype("float32")
    y = compute(x, *weights, np.full((70, 16), np.nan, "float32"))[-1]
    for row in (0, 31, 32, 63, 64, 69):
        alone = compute(x[row : row + 1], *weights, np.zeros((1, 16), "float32"))[-1]
        assert np.array_equal(alone[0], y[row])


@pytest.mark.parametrize("k", [576, 2048, 4096, 8192, 14336, 28672])
def test_a_step_of_64_sequences_reads_each_weight_once(k):
    """Each block of rows reads all weights; pairs of rows have twice the bytes."""
    assert rows_together(k) >= rows_together(2 * k) >= 64
    assert rows_together(k) % 32 == 0  # tiles of full height


@pytest.mark.parametrize(("scheme", "scale_dtype"), INTEGERS)
def test_a_scale_of_zero_makes_weights_of_zero(any_machine, scheme, scale_dtype):
    """Whatever the integers are: other programs write any."""
    linear = CpuKernels(any_machine.isa).linear(spec_of(16, 64, scheme, scale_dtype))
    rng = np.random.default_rng(6)
    (words, scales), _ = portable(rng, 16, 64, scheme, scale_dtype)
    scales[3] = 0
    x = np.full((2, 64), 1e6, "float32")
    weights = packed(any_machine, linear, (words, scales))
    y = any_machine.build(linear.compute)(x, *weights, np.ones((2, 16), "float32"))[-1]
    assert np.array_equal(y[:, 3], [0, 0]) and (y[:, 4] != 0).all()


@pytest.mark.parametrize(("scheme", "scale_dtype"), FORMATS)
@pytest.mark.parametrize(("n", "k"), SHAPES)
@pytest.mark.by_day("344-172-f32", "80-36-q4-float16", "8-8-q8")
def test_embedding(here, n, k, scheme, scale_dtype):
    kernels = CpuKernels(here.isa)
    spec = EmbeddingSpec(vocab=n, dim=k, scheme=scheme, scale_dtype=scale_dtype)
    stored, table = portable(np.random.default_rng(2), n, k, scheme, scale_dtype)
    weights = packed(here, kernels.linear(spec.as_linear()), stored)
    tokens = np.array([0, n - 1, n // 2, 3, 3], "int32")
    lookup = here.build(kernels.embedding(spec))
    y = lookup(tokens, *weights, np.zeros((5, k), "float32"))[-1]
    assert np.array_equal(y, table[tokens])


@pytest.mark.parametrize("activation", [None, "gelu", "relu2"])
@pytest.mark.parametrize("scheme", ["f32", "q8"])
@pytest.mark.by_day("f32-gelu", "q8-relu2")
def test_a_bias_and_an_activation_in_the_kernel_of_a_linear(any_machine, scheme, activation):
    """The bits of one kernel after the other."""
    rng = np.random.default_rng(6)
    n, k = 80, 36  # five panels: a strip of three has one beyond the last
    kernels = CpuKernels(any_machine.isa)
    plain = spec_of(n, k, scheme, "float16" if scheme == "q8" else None)
    spec = BiasedLinearSpec(**dataclasses.asdict(plain), activation=activation)
    linear, biased = kernels.linear(plain), kernels.biased_linear(spec)
    stored, _ = portable(rng, n, k, scheme, plain.scale_dtype)
    weights = packed(any_machine, linear, stored)
    assert biased.weights == linear.weights and biased.inputs == 2
    x, bias = (rng.standard_normal(s).astype("float32") for s in ((31, k), n))
    empty = np.full((31, n), np.nan, "float32")
    expected = any_machine.build(linear.compute)(x, *weights, empty)[-1] + bias
    if activation is not None:
        apply = kernels.activation(ActivationSpec(dim=n, kind=activation))
        expected = any_machine.build(apply)(expected, empty)[-1]
    compute = any_machine.build(biased.compute)
    assert np.array_equal(compute(x, bias, *weights, empty)[-1], expected)


def test_a_part_of_a_panel_has_no_biased_kernel():
    kernels = CpuKernels(isa_from_features({"avx2", "fma"}))
    spec = BiasedLinearSpec(out_features=24, in_features=32, scheme="f32")
    assert kernels.biased_linear(spec) is None

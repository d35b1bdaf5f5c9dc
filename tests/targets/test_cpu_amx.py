"""Kernels for AMX, whose instructions are emulated; a CPU that has them gives the same bits."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm.target import Target

from wherry.compiler.library.build import code_generation
from wherry.machine.cpu import cpu_features
from wherry.ops import ActivationSpec, BiasedLinearSpec
from wherry.targets.kernels import ExpertLinearSpec
from wherry.targets.kernels.cpu import (
    CpuKernels,
    bf16_linear,
    bf16_tiles,
    bf16_weights,
    isa_from_features,
)
from wherry.targets.kernels.cpu.int_layout import LAYOUTS
from wherry.targets.target import find

from ..support import amx
from .expert_cases import Bank, arguments, empty
from .test_cpu_linear import FORMATS, packed, portable, spec_of

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    return amx.Emulator(tmp_path_factory.mktemp("amx"))


@pytest.fixture
def unit(here, emulator):
    """This CPU with an emulated matrix unit."""
    return dataclasses.replace(here, isa=amx.with_matrix_unit(here.isa))


def linear_of(unit, emulator, spec, stored, instruction=amx.call) -> Callable[..., np.ndarray]:
    """The kernel of a linear, or with a bias; it takes x, and the bias if there is one."""
    kernels = CpuKernels(unit.isa, activations="bf16")
    with amx.emulated(instruction):
        biased = isinstance(spec, BiasedLinearSpec)
        linear = kernels.biased_linear(spec) if biased else kernels.linear(spec)
        compute = unit.build(linear.compute)
    weights = packed(unit, linear, stored)

    def run(x, *bias):
        y = np.full((len(x), spec.out_features), np.nan, "float32")
        y = compute(x, *bias, *weights, y)[-1]
        emulator.check()
        return y

    return run


def error_of(y, expected):
    return np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2))


def product_of(x, weight):
    """What the matrix unit computes of rounded operands, but for the order of its sums."""
    x, weight = (amx.of_bits(amx.rounded(each)) for each in (x, weight))
    return x @ weight.T


def test_the_emulator_adds_as_intel_documents(emulator):
    rng = np.random.default_rng(0)
    c = rng.standard_normal((16, 16)).astype("float32")
    a, b = (amx.rounded(100 * rng.standard_normal((16, 32))) for _ in range(2))
    # rows of A: even and odd elements of K; rows of B: even and odd ones of each column
    x, w = amx.of_bits(a).reshape(16, 16, 2), amx.of_bits(b).reshape(16, 16, 2)
    parts = np.zeros((16, 16, 2), "float32")
    for k in range(16):  # products are exact in float64, and nearly always their sums
        parts = (parts + x[:, None, k] * w[None, k]).astype("float32")
    expected = c + (parts[..., 0] + parts[..., 1])
    assert np.array_equal(emulator.product(c, a, b), expected)
    assert error_of(expected, c + x.reshape(16, 32) @ w.transpose(0, 2, 1).reshape(32, 16)) < 1e-6


def test_the_emulator_flushes_denormals(emulator):
    c = np.full((16, 16), 1e-39, "float32")
    a, b = np.zeros((16, 32), "uint16"), np.zeros((16, 32), "uint16")
    a[:, 0], b[0, 0::2] = amx.rounded(np.float32(1.0)), 1  # one times the least denormal
    assert not emulator.product(c, a, b).any()
    b[0, 0::2] = amx.rounded(np.float32(1e-30))
    a[:, 0] = amx.rounded(np.float32(1e-9))  # a denormal product
    assert not emulator.product(c, a, b).any()


def cut(weight, scales, scheme):
    """Weights [n, k] of 4 or 8 bits as `bf16_weights.integers` dequantizes them, as float64."""
    k = weight.shape[1]
    own = np.repeat(scales.astype("float32"), 32, axis=1)[:, :k]
    integers = np.rint(weight / own).astype("float64")
    scale = own * np.float32(bf16_weights._CUT)
    half = np.arange(k) % 32 // 16
    base = 2.0 ** np.where(half == 0, 11, 7) if scheme == "q4" else np.full(k, 2.0**15)
    zero = LAYOUTS[scheme].zero
    start = -(base + zero).astype("float32") * scale
    # exact in float64: one rounding, as a fused multiply-add has
    value = ((base + zero + integers) * scale.astype("float64") + start).astype("float32")
    return (value.view("uint32") & 0xFFFF0000).view("float32").astype("float64")


@pytest.mark.skipif("amx_bf16" not in cpu_features(), reason="this CPU has no AMX")
@pytest.mark.parametrize(
    ("scheme", "scale_dtype"),
    [("q4", "float16"), pytest.param("f16", None, marks=pytest.mark.nightly)],
)
def test_hardware_gives_the_bits_of_the_emulator(here, emulator, scheme, scale_dtype):
    """Chunks of K, strips, and blocks of rows; products down to denormals."""
    assert amx.permitted()
    level, spec = find("cpu").bf16, spec_of(344, 1100, scheme, scale_dtype)
    rng = np.random.default_rng(4)
    stored, _ = portable(rng, 344, 1100, scheme, scale_dtype)
    hardware = dataclasses.replace(
        here, target=Target(dict(level.device)), isa=isa_from_features(level.features)
    )
    x = rng.standard_normal((300, 1100)).astype("float32")
    kernel = CpuKernels(hardware.isa, activations="bf16").linear(spec)
    weights, compute = packed(hardware, kernel, stored), hardware.build(kernel.compute)
    emulated = linear_of(hardware, emulator, spec, stored)
    for scaled in (x, np.float32(1e-20) * x, np.float32(1e18) * x):
        y = compute(scaled, *weights, np.zeros((300, 344), "float32"))[-1]
        assert np.array_equal(emulated(scaled), y)


Q4 = {"scheme": "q4", "scale_dtype": "float16"}
# N, K, rows: a part of a panel, of a group, of a block of rows; several chunks of K and strips; K
# below a group
BY_DAY, NIGHTLY = [("q4", "float16"), ("f16", None)], pytest.mark.nightly
SHAPES = [(344, 172, 33), (40, 1100, 64), (8, 8, 63)]


# The first shape in all formats, the others in one of each kind.
LINEARS = [
    pytest.param(*shape, *form, marks=() if shape in SHAPES[:1] or form in BY_DAY else NIGHTLY)
    for shape in SHAPES
    for form in FORMATS
]


@pytest.mark.parametrize(("n", "k", "m", "scheme", "scale_dtype"), LINEARS)
def test_linear(unit, emulator, n, k, m, scheme, scale_dtype):
    rng = np.random.default_rng(n + k)
    stored, weight = portable(rng, n, k, scheme, scale_dtype)
    run = linear_of(unit, emulator, spec_of(n, k, scheme, scale_dtype), stored)
    x = rng.standard_normal((m, k)).astype("float32")
    y = run(x)
    if scheme in LAYOUTS:
        dequantized = cut(weight, stored[1], scheme)
        assert error_of(y, amx.of_bits(amx.rounded(x)) @ dequantized.T) < 3e-7
        # the scale makes up for what is cut off on average
        assert abs(np.sum(dequantized * weight) / np.sum(weight**2) - 1) < 6e-4
    else:
        assert error_of(y, product_of(x, weight)) < 3e-7
    assert error_of(y, x.astype("float64") @ weight.T) < 4e-3
    # In other blocks the rows have the same bits.
    order = rng.permutation(m)
    assert np.array_equal(run(x[order]), y[order])
    assert np.array_equal(run(np.concatenate([x[7:], x]))[: m - 7], y[7:])


@pytest.mark.parametrize(("scheme", "scale_dtype"), [("q4", "float16"), ("f16", None)])
def test_few_rows_have_the_bits_of_the_other_kernels(unit, here, emulator, scheme, scale_dtype):
    rng = np.random.default_rng(5)
    stored, _ = portable(rng, 80, 96, scheme, scale_dtype)
    run = linear_of(unit, emulator, spec_of(80, 96, scheme, scale_dtype), stored)
    linear = CpuKernels(here.isa).linear(spec_of(80, 96, scheme, scale_dtype))
    weights, compute = packed(here, linear, stored), here.build(linear.compute)
    x = rng.standard_normal((bf16_linear.LEAST, 96)).astype("float32")
    expected = compute(x, *weights, np.zeros((len(x), 80), "float32"))[-1]
    assert np.array_equal(run(x[:-1]), expected[:-1])
    assert not np.array_equal(run(x), expected)


def test_exact_numbers_have_exact_products(unit, emulator):
    """Integers of 8 bits, and many strips, chunks, and blocks of rows at once."""
    rng = np.random.default_rng(2)
    n, k, m = 400, 1600, 540
    assert n > 16 * bf16_tiles.WIDTH and k > 32 * bf16_tiles.CHUNK
    assert m > bf16_tiles.BLOCK * bf16_tiles.TOGETHER
    weight = rng.integers(-9, 10, (n, k)).astype("float32")
    x = rng.integers(-100, 101, (m, k)).astype("float32")
    run = linear_of(unit, emulator, spec_of(n, k, "f32", None), [weight])
    assert np.array_equal(run(x), x @ weight.T)


@pytest.mark.parametrize("scheme", ["f32", "q8"])
def test_a_bias_and_an_activation(unit, emulator, scheme):
    rng = np.random.default_rng(6)
    n, k = 80, 36
    plain = spec_of(n, k, scheme, "float16" if scheme == "q8" else None)
    stored, _ = portable(rng, n, k, scheme, plain.scale_dtype)
    x, bias = (rng.standard_normal(s).astype("float32") for s in ((45, k), n))
    spec = BiasedLinearSpec(**dataclasses.asdict(plain), activation="gelu")
    y = linear_of(unit, emulator, spec, stored)(x, bias)
    expected = linear_of(unit, emulator, plain, stored)(x) + bias
    gelu = unit.build(CpuKernels(unit.isa).activation(ActivationSpec(dim=n, kind="gelu")))
    assert np.array_equal(y, gelu(expected, np.zeros_like(expected))[-1])


EXPERTS = [
    ExpertLinearSpec(experts=3, top_k=2, out_features=176, in_features=1100, gate="silu", **Q4),
    ExpertLinearSpec(experts=4, top_k=2, out_features=70, in_features=44, combined=True, **Q4),
    ExpertLinearSpec(
        experts=3, top_k=2, out_features=40, in_features=32, scheme="f16", combined=True, bias=True
    ),
    ExpertLinearSpec(
        experts=2, top_k=2, out_features=24, in_features=64, scheme="f32", routed=False
    ),
]


@pytest.mark.parametrize("spec", EXPERTS)
def test_experts(unit, emulator, spec):
    rng = np.random.default_rng(spec.out_features)
    kernels, bank, rows = CpuKernels(unit.isa, activations="bf16"), Bank.of(rng, spec), 120
    linear = kernels.expert_linear(spec)
    with amx.emulated():
        compute = unit.build(kernels.expert_linear(spec).compute)
    weights = packed(unit, linear, bank.stored)
    ids = [np.sort(rng.permutation(spec.experts)[: spec.top_k]) for _ in range(rows)]
    ids = np.array(ids, "int32")
    assert min(np.bincount(ids.reshape(-1), minlength=spec.experts)) >= bf16_linear.LEAST
    shares = rng.uniform(0.1, 1, ids.shape).astype("float32")
    each = 1 if spec.shared_rows else spec.top_k
    x = rng.standard_normal((rows, each, spec.in_features)).astype("float32")

    def run(some):
        given = arguments(spec, bank, x[some].reshape(-1, x.shape[-1]), ids[some], shares[some])
        y = compute(*given, *weights, empty(spec, len(ids[some])))[-1]
        emulator.check()
        return y.reshape(len(ids[some]), -1)

    cut = spec.scheme in LAYOUTS  # those of 4 bits are not rounded, see `bf16_weights.integers`
    if not cut:
        bank = dataclasses.replace(bank, weight=amx.of_bits(amx.rounded(bank.weight)))
    rounded = amx.of_bits(amx.rounded(x)).reshape(-1, x.shape[-1])
    y, expected = run(slice(None)), bank.expected(rounded, ids, shares).reshape(rows, -1)
    assert error_of(y, expected) < (3e-3 if cut else 1e-6)
    order = rng.permutation(rows)
    assert np.array_equal(run(order), y[order])
    assert error_of(run(slice(0, 30)), expected[:30]) < 0.02  # a small batch: in int8
    assert error_of(run(slice(0, 50)), expected[:50]) < 0.02  # some experts of each kind


# Mistakes, planted to see that the test of exact products finds them: replacements of
# `bf16_tiles.instruction`.


def _without(feature, replaced=None):
    def instruction(name, *arguments):
        if name != feature:
            amx.call(name, *arguments)
        elif replaced:
            replaced(*arguments)

    return instruction


def _is_sum(register):
    return int(register.value) < 4


def _no_reload(register, *rest):
    amx.call("tilezero" if _is_sum(register) else "tileloadd64", register, *_no(rest, register))


def _no(rest, register):
    return () if _is_sum(register) else rest


def _two_rows_on(register, base, _stride):
    amx.call("tileloadd64", register, base, tvm.tirx.IntImm("int64", 128))


def _same_tile(c, a, b):
    amx.call("tdpbf16ps", c, a, tvm.tirx.IntImm("int8", bf16_tiles._B))


def _swapped(c, a, b):
    amx.call("tdpbf16ps", c, b, a)


MISTAKES = {
    "no configuration": _without("ldtilecfg"),
    "no release": _without("tilerelease"),
    "no zeros at the start": _without("tilezero"),
    "sums start anew in each chunk": _without("tileloadd64", _no_reload),
    "wrong stride": _without("tileloadd64", _two_rows_on),
    "one panel twice": _without("tdpbf16ps", _same_tile),
    "rows and weights swapped": _without("tdpbf16ps", _swapped),
    "no store": _without("tilestored64"),
}


def exact_case(unit, emulator, instruction=amx.call, k=1100):
    rng = np.random.default_rng(9)
    weight = rng.integers(-9, 10, (40, k)).astype("float32")
    x = rng.integers(-100, 101, (70, k)).astype("float32")
    run = linear_of(unit, emulator, spec_of(40, k, "f32", None), [weight], instruction)
    run(x + 1)  # leaves numbers in memory and tiles that zeros would hide
    assert np.array_equal(run(x), x @ weight.T)


def test_no_mistake(unit, emulator):
    exact_case(unit, emulator)


@pytest.mark.parametrize(
    "mistake",
    [
        *list(MISTAKES)[:3],
        *(pytest.param(name, marks=pytest.mark.nightly) for name in list(MISTAKES)[3:]),
    ],
)
def test_a_planted_mistake_is_detected(unit, emulator, mistake):
    with pytest.raises(AssertionError):
        exact_case(unit, emulator, MISTAKES[mistake])
    emulator.functions.emulated_tilerelease()
    emulator.functions.emulated_problem()


def test_planted_mistakes_of_layouts_are_detected(unit, emulator, monkeypatch):
    def swapped(W):
        unpack = bf16_weights_floats(W)
        return lambda p, g, store: unpack(p, g, lambda i, even, odd: store(i, odd, even))

    def shifted(W):
        unpack = bf16_weights_floats(W)
        return lambda p, g, store: unpack(p, g, lambda i, *pair: store((i + 1) % 16, *pair))

    def halves(self, row, g, first, values):
        store(self, row, g, 16 - first, values)

    bf16_weights_floats, store = bf16_weights.floats, bf16_tiles.Bf16Rows._store
    for owner, name, mistake in (
        (bf16_weights, "floats", swapped),
        (bf16_weights, "floats", shifted),
        (bf16_tiles.Bf16Rows, "_store", halves),
        (bf16_tiles.Bf16Rows, "store_row", lambda *_: None),
        (bf16_weights, "GROUP", 16),  # the tail of K is another
        (bf16_tiles, "_BYTES", 32),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, mistake)
            with pytest.raises(AssertionError):
                exact_case(unit, emulator)
        emulator.functions.emulated_problem()


@pytest.mark.parametrize(("scheme", "scale_dtype"), [("q4", "float16"), ("f16", None)])
def test_code(scheme, scale_dtype):
    """The instructions are there: LLVM assembles them for the level, and unrolls the loop of K."""
    level = find("cpu:x86-64-v3+").with_activations("bf16").variants[-1]
    compute = level.kernels.kernels.linear(spec_of(64, 2048, scheme, scale_dtype)).compute
    module, target = (
        tvm.IRModule({"kernel": compute.with_attr("global_symbol", "kernel")}),
        Target(dict(level.device)),
    )
    with code_generation(target):
        code = tvm.compile(module, target=target).mod.inspect_source("asm")

    def count(pattern):
        return len(re.findall(pattern, code))

    products, released = count(r"\ttdpbf16ps\s"), count(r"\ttilerelease")
    assert products >= 8 and products % 4 == 0
    assert count(r"\tldtilecfg\s") == released == 1
    assert count(r"\ttilestored\s.*%tmm[4-7]") == 0
    assert count(r"\ttilezero\s") % 4 == 0 and count(r"\ttilezero\s") > 0
    loop = re.search(r"(?:\ttileloadd.*\n|\tlea.*\n|\tadd.*\n|\ttdpbf16ps.*\n)+", code)
    assert loop
    assert code.index("ldtilecfg") < code.index("tdpbf16ps") < code.index("tilerelease")
    assert ("vpdpbusd" in code) == (scheme == "q4")  # GEMV keeps its kernel

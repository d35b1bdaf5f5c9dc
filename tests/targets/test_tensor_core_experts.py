"""Experts on NVIDIA's tensor cores: their CUDA C++, run by an emulator, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from wherry.ops.blocks import FORMATS
from wherry.targets.kernels import ExpertLinearSpec, RouteSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits, tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import layout, packing
from wherry.targets.kernels.gpu.tensor_cores.expert_plan import ExpertPlan
from wherry.targets.kernels.gpu.tensor_cores.plan import Gemm, Gemv

from ..support import cuda
from ..support.builders import builder
from .expert_cases import Bank, arguments, in_blocks, slots_of
from .test_tensor_core_linear import BOUND, numpy_layout

experts = import_module("wherry.targets.kernels.gpu.tensor_cores.experts")
LIMITS = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
KERNELS = GpuKernels(LIMITS, {})
NIGHTLY = pytest.mark.nightly
ROWS = 33
INTEGERS = {"scale_dtype": "float16"}


@pytest.fixture(scope="module")
def build():
    return builder("cuda")


def expert_layout(bank):
    """The packed tensor: all experts' words, then all their scales."""
    spec = bank.spec
    shape = (spec.out_features, spec.in_features, spec.scheme)
    own = [numpy_layout([t[i] for t in bank.stored], *shape) for i in range(spec.experts)]
    words = layout.scales_at(spec.linear())
    return np.concatenate([t[part] for part in (slice(words), slice(words, None)) for t in own])


def spec_of(experts, top_k, n, k, scheme, **more):
    scales = {} if scheme == "f16" else INTEGERS
    shape = {"experts": experts, "top_k": top_k, "out_features": n, "in_features": k}
    return ExpertLinearSpec(**shape, scheme=scheme, **scales, **more)


HALF_OUT, HALF_IN = {"y_dtype": "float16"}, {"x_dtype": "float16"}
CASES = {
    "gate": spec_of(6, 2, 2 * 48, 320, "q4", gate="silu"),
    "sum": spec_of(6, 3, 40, 192, "q4", combined=True, residual=True, **HALF_IN),
    "clamped gate of 8 bits": spec_of(
        8, 2, 2 * 32, 128, "q8", gate="clamped", bias=True, **HALF_OUT
    ),
    "sum of floats": spec_of(4, 2, 24, 576, "f16", combined=True, bias=True),
    "sum of one": spec_of(4, 1, 24, 64, "q8", combined=True, residual=True, **HALF_OUT),
    "GELU": spec_of(4, 2, 2 * 16, 64, "f16", gate="gelu_tanh"),
    "no choice": spec_of(3, 3, 40, 128, "q4", routed=False),
    "sum of zero points": in_blocks(
        spec_of(3, 2, 24, 192, "q4", combined=True, **HALF_IN), "affine4f16_g64"
    ),
    "sum of scales for 16 columns": in_blocks(
        spec_of(3, 2, 24, 256, "q4", combined=True, **HALF_IN), "q6_k"
    ),
    "gate of 8 bits and minimums": in_blocks(spec_of(4, 2, 2 * 16, 64, "q4", gate="silu"), "q5_1"),
    "clamped gate of floats": in_blocks(
        spec_of(8, 2, 2 * 32, 128, "q4", gate="clamped", bias=True, **HALF_OUT), "mxfp4"
    ),
    "sum of floats of 8 bits": in_blocks(
        spec_of(3, 2, 24, 192, "q4", combined=True, **HALF_IN), "fp8_row"
    ),
    "sum of floats of 4 bits": in_blocks(
        spec_of(3, 2, 24, 192, "q4", combined=True, **HALF_IN), "nvfp4"
    ),
    "sum of 3 bits": in_blocks(spec_of(3, 2, 24, 256, "q4", combined=True, **HALF_IN), "q3_k"),
    "sum of 2 bits": in_blocks(spec_of(3, 2, 24, 256, "q4", combined=True, **HALF_IN), "q2_k"),
    "sum of a codebook": in_blocks(
        spec_of(3, 2, 24, 256, "q4", combined=True, **HALF_IN), "iq4_xs"
    ),
    "sum of grids": in_blocks(spec_of(3, 2, 24, 256, "q4", combined=True, **HALF_IN), "iq2_s"),
    "gate of a codebook": in_blocks(
        spec_of(4, 2, 2 * 16, 64, "q4", gate="silu", **HALF_IN), "iq4_nl"
    ),
    # Scales of two levels are rounded to float16, and here nothing else that counts.
    "gate of 2 bits": in_blocks(spec_of(4, 2, 2 * 16, 256, "q4", gate="silu"), "q2_k"),
    "gate of grids": in_blocks(spec_of(4, 2, 2 * 16, 256, "q4", gate="silu"), "iq2_s"),
    "gate of minimums": in_blocks(spec_of(4, 2, 2 * 16, 64, "q4", gate="silu"), "q4_1"),
}
ROUNDED = {"q2_k": 8e-4, "iq2_s": 8e-4}  # relative errors, as BOUND's
BY_DAY = ("gate", "sum", "sum of zero points", "clamped gate of floats")


def plan_of(spec):
    """All kernels, with fewer slots than they are for."""
    usual = ExpertPlan.of(spec)
    few = ((1, usual.gemv[0][1]), (3, Gemv(2, 2)))
    return replace(usual, gemv=few, gemm=Gemm(2, 2, 2, 3))


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in BY_DAY else NIGHTLY) for c in CASES]
)
def test_expert_linear(build, case):
    check(build, CASES[case], plan_of(CASES[case]))


@NIGHTLY
def test_a_row_that_shared_memory_cannot_hold(build):
    """Its slots have blocks of their own, and a launch adds them."""
    spec = CASES["sum"]
    assert ExpertPlan.of(replace(spec, in_features=1 << 14)).turns == 1
    check(build, spec, replace(plan_of(spec), turns=1))


def _packed(build, bank):
    """The packed tensor of a block format, by the kernel that packs it."""
    spec = bank.spec.linear()
    empty = np.full(layout.size(spec, bank.spec.experts), 77, "uint32")
    return build(packing.pack(spec, bank.spec.experts))(*bank.stored, empty)[-1]


def check(build, spec, plan):
    rng = np.random.default_rng(spec.out_features + spec.in_features)
    kernel = tensor_cores.expert_linear(spec, plan)
    compute = build(kernel.compute)
    bank = Bank.of(rng, spec)
    packed = expert_layout(bank) if spec.scheme not in FORMATS else _packed(build, bank)
    assert kernel.packed == (packed.shape, "uint32")
    ids = np.array([np.sort(rng.permutation(spec.experts)[: spec.top_k]) for _ in range(ROWS)])
    ids[5:25] = np.arange(spec.top_k)  # some have many slots, and some rows none of the others
    ids = ids.astype("int32")
    shares = rng.uniform(0.1, 1, ids.shape).astype("float32")
    each = 1 if spec.shared_rows else spec.top_k  # rows of x
    x = (rng.standard_normal((ROWS, each, spec.in_features)) / 8).astype(spec.x_dtype)
    residual = rng.standard_normal((ROWS, spec.out_features)).astype("float32")
    ((rows_shape, _), *_) = kernel.scratch

    def run(some):
        n = len(ids[some])
        given = arguments(spec, bank, x[some].reshape(n * each, -1), ids[some], shares[some])
        if spec.routed and n * spec.top_k <= max(spec.experts // 4, spec.top_k):
            given[2], given[3] = (
                given[2] * 0 - 1,
                given[3] * 0 + 2**30,
            )  # the sorted slots are unset
        given += [packed, *([residual[some]] if spec.residual else [])]
        out = (n if spec.combined else n * spec.top_k, spec.width)
        outputs = [np.full(out, np.nan, spec.y_dtype)]
        rows = n * each if rows_shape[0] == "x" else 1
        outputs.append(np.full((rows, *rows_shape[1:]), np.nan, "float16"))
        if spec.combined:
            outputs.append(np.full((n * spec.top_k, spec.out_features), np.nan, "float32"))
        return compute(*given, *outputs)[len(given)].reshape(n, -1)

    y = run(slice(None))
    expected = bank.expected(x.reshape(ROWS * each, -1), ids, shares).reshape(ROWS, -1)
    expected = expected + residual if spec.residual else expected
    bound = max(ROUNDED.get(spec.scheme, 0), BOUND[spec.y_dtype])
    assert np.sqrt(np.mean((y - expected) ** 2) / np.mean(expected**2)) < bound
    # GEMV and GEMM are different kernels: the same bits.
    for some in (slice(0, 1), slice(7, 8), slice(4, 6), slice(3, 9), rng.permutation(ROWS)):
        assert np.array_equal(run(some), y[some])


BARRIER = "__syncthreads();"
MISTAKES = {  # a case, and what is written in the place of what
    "the weights of the slot before": (
        "sum",
        "if (++turn < turns) tile = expert(turn) * E::kTiles;",
        "++turn;",
    ),
    "a row that is not there yet": ("sum", f"* 2);\n  {BARRIER}", "* 2);"),
    "sums that are not there yet": (
        "sum",
        f"{BARRIER}\n\n  constexpr int kTileStep",
        "constexpr int kTileStep",
    ),
    "all tiles are the first": ("gate", "first + (tile - first / kSize - low) * kSize", "first"),
    "a tile's expert is the next": ("gate", "expert = low;", "expert = low + 1;"),
}


@NIGHTLY
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_detected(monkeypatch, name):
    case, old, new = MISTAKES[name]
    right = experts.source()
    assert old in right
    monkeypatch.setattr(experts, "source", lambda: right.replace(old, new))
    with pytest.raises(AssertionError, match=r"array_equal|sqrt"):
        check(cuda.build, CASES[case], plan_of(CASES[case]))


@pytest.mark.parametrize("scheme", ["q4", *(pytest.param(s, marks=NIGHTLY) for s in ("q8", "f16"))])
def test_weights(build, scheme):
    spec = spec_of(3, 1, 24, 128, scheme)
    bank = Bank.of(np.random.default_rng(2), spec)
    pack = build(tensor_cores.expert_linear(spec).pack)
    expected = expert_layout(bank)
    packed = pack(*bank.stored, np.full(expected.shape, 77, "uint32"))[-1]
    assert np.array_equal(packed, expected)


def test_more_than_gemv_slots_are_sorted(build):
    """From fewer on than other kernels read the order."""
    spec = RouteSpec(experts=12, top_k=2)
    kernel = build(KERNELS.route(spec))
    rng = np.random.default_rng(4)
    for n, is_sorted in ((1, False), (2, True), (70, True)):
        outputs = [np.zeros((n, 2), "int32"), np.zeros((n, 2), "float32")]
        outputs += [np.full(13, -1, "int32"), np.full(n * 2, -1, "int32")]
        logits = rng.standard_normal((n, 12)).astype("float32")
        ids, _, *order = kernel(logits, *outputs)[-4:]
        expected = slots_of(ids, 12) if is_sorted else outputs[2:]
        assert all(map(np.array_equal, order, expected))


def test_what_has_tensor_cores():
    fits = CASES["gate"]
    for change, whether in (
        ({}, True),
        ({"scale_dtype": "float32"}, False),
        ({"in_features": 96}, False),
        ({"out_features": 72}, False),  # 36 columns are no row tiles
        ({"gate": None, "out_features": 72}, True),
        ({"scheme": "f32", "scale_dtype": None}, False),
    ):
        own = KERNELS.expert_linear(replace(fits, **change))
        assert (getattr(own, "pack", None) is not None) == whether, change


MODELS = {  # experts, slots of a row, width of a row, of an expert
    "Qwen3-30B-A3B": (128, 8, 2048, 768),
    "Mixtral-8x7B": (8, 2, 4096, 14336),
    "gpt-oss-20b": (32, 4, 2880, 2880),
    "DeepSeek-V3": (256, 8, 7168, 2048),
}


@pytest.mark.parametrize("model", MODELS)
def test_plans(model):
    experts, top_k, hidden, inner = MODELS[model]
    up = spec_of(experts, top_k, 2 * inner, hidden, "q4", gate="silu")
    down = spec_of(experts, top_k, hidden, inner, "q4", combined=True)
    for spec in (up, down):
        assert tensor_cores.fits_experts(spec)
        plan = ExpertPlan.of(spec)
        assert plan.row_bytes(spec) <= 99 << 10
        assert max(few.sums_bytes(plan.slices) for _, few in plan.gemv) <= 48 << 10
        assert plan.gemm.shared_bytes() <= 48 << 10
        assert [most for most, _ in plan.gemv] == sorted(most for most, _ in plan.gemv)
        if spec.gate:
            assert all(few.row_tiles % 2 == 0 for _, few in plan.gemv)
    assert ExpertPlan.of(down).turns == top_k

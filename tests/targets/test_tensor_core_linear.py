"""Linears on NVIDIA's tensor cores: their CUDA C++, run by an emulator, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wherry.targets.kernels import EmbeddingSpec, FusedLinearSpec, LinearSpec
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits, tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import layout, packing
from wherry.targets.kernels.gpu.tensor_cores.plan import (
    Gemm,
    Gemv,
    TensorCoreLinearPlan,
    WarpgroupGemm,
)

from ..support.builders import builder
from .test_cpu_linear import portable
from .test_fused_linear import expected, spec_of

LIMITS = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
KERNELS = GpuKernels(LIMITS, {})
SINGLE, HALF = "float32", "float16"
MOST_SHARED = 227 << 10  # bytes that a block of sm_90 may ask for
ROWS, WIDE_ROWS = 75, 140  # more than a tile of every kernel


@pytest.fixture(scope="module")
def build():
    return builder("cuda")


def numpy_layout(stored, n, k, scheme):
    """The packed tensor, element by element as layout.py's text has it."""
    tiles, chunks = -(-n // 16), k // 64
    at = np.indices((tiles, chunks, 4, 32, 4, 2)).reshape(6, -1)
    tile, chunk, step, lane, pair, odd = at
    row = tile * 16 + lane // 4 + pair % 2 * 8
    column = chunk * 64 + lane % 4 * 16 + step * 4 + pair // 2 * 2 + odd
    there, row = row < n, np.minimum(row, n - 1)
    if scheme == "f16":
        values = np.where(there, stored[0].view("uint16")[row, column], 0).astype("uint32")
        return (values.reshape(-1, 2) << np.array([0, 16], "uint32")).sum(-1, dtype="uint32")
    words, scales = stored
    bits = int(scheme[1:])
    each, place = (8, pair + 4 * odd) if bits == 4 else (4, pair % 2 + 2 * odd)
    numbers = words[row, column // each] >> (column % each * bits).astype("uint32") & 2**bits - 1
    numbers = np.where(there, numbers, 2 ** (bits - 1) - 1).astype("uint32")
    numbers = numbers << (bits * place).astype("uint32")
    if bits == 4:
        packed = numbers.reshape(tiles, chunks, 4, 32, 8).sum(-1, dtype="uint32")
        packed = packed.transpose(0, 1, 3, 2)
    else:
        packed = numbers.reshape(tiles, chunks, 2, 2, 32, 2, 4).sum(-1, dtype="uint32")
        packed = packed.transpose(0, 1, 2, 4, 3, 5)
    tile, chunk, row, group, half = np.indices((tiles, chunks, 8, 2, 2)).reshape(5, -1)
    row = tile * 16 + row + half * 8
    bits = scales.view("uint16")[np.minimum(row, n - 1), chunk * 2 + group]
    bits = np.where(row < n, bits, 0).astype("uint32") << (16 * half).astype("uint32")
    pairs = bits.reshape(-1, 2).sum(-1, dtype="uint32")
    return np.concatenate([packed.ravel(), pairs])


@pytest.mark.parametrize(
    ("scheme", "scale_dtype"),
    [
        ("q4", "float16"),
        ("q8", "float16"),
        pytest.param("f16", None, marks=pytest.mark.nightly),
    ],
)
def test_weights_and_the_embedding_that_shares_them(build, scheme, scale_dtype):
    n, k = 40, 192  # the last row tile has 8 rows
    stored, table = portable(np.random.default_rng(1), n, k, scheme, scale_dtype)
    spec = LinearSpec(out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype)
    empty = np.full(layout.size(spec), 77, "uint32")
    packed = build(packing.pack(spec))(*stored, empty)[-1]
    assert np.array_equal(packed, numpy_layout(stored, n, k, scheme))
    tokens = np.array([0, n - 1, 9, 17, 17, 24], "int32")
    own = EmbeddingSpec(vocab=n, dim=k, scheme=scheme, scale_dtype=scale_dtype)
    y = build(KERNELS.embedding(own))(tokens, packed, np.full((6, k), np.nan, "float32"))[-1]
    assert np.array_equal(y, table[tokens])


def by_float16(scheme, weight):
    """The weight that is multiplied by."""
    return weight.astype("float16").astype("float64") if scheme != "f16" else weight


CASES = {  # N, K, scheme, dtype of scales, norm, gated, residual, dtypes of x and y
    "4 bits": (40, 1152, "q4", "float16", False, False, False, HALF, SINGLE),
    "4 bits, norm and gate": (2 * 48, 640, "q4", "float16", True, True, False, SINGLE, HALF),
    "floats, residual": (90, 320, "f16", None, False, False, True, HALF, SINGLE),
    "floats, gate": (2 * 16, 64, "f16", None, False, True, False, SINGLE, HALF),
    "4 bits, residual": (300, 576, "q4", "float16", False, False, True, HALF, SINGLE),
    "8 bits, norm and gate": (2 * 32, 576, "q8", "float16", True, True, False, SINGLE, HALF),
    "8 bits, residual": (90, 320, "q8", "float16", False, False, True, HALF, SINGLE),
    "floats, norm": (33, 704, "f16", None, True, False, False, SINGLE, HALF),
}
BY_NIGHT = ("floats, gate", "4 bits, residual", "floats, norm", "8 bits, residual")
# Of the root mean square of y: what float16 costs, and what is left where all of it is known.
BOUND = {SINGLE: 4e-4, HALF: 6e-4}
REST = {SINGLE: 2e-6, HALF: 4e-4}


MOST_FEW = 40  # rows, in the plans here


def plan_of(spec, many):
    """All kernels, with fewer rows than they are for; of many there are two patches.

    Of floats "wide" tiles are those of sm_90; others have none, for which small ones stand.
    """
    usual = TensorCoreLinearPlan.of(spec, MOST_SHARED)
    rows = ((1,) if usual.gemv[0][1].normed else ()) + (5, 13, MOST_FEW)
    few = [(most, own) for most, (_, own) in zip(rows, usual.gemv, strict=True)]
    plan = TensorCoreLinearPlan(tuple(few), Gemm(2, 4, 4, 3, patch=2), usual.slices)
    if not many:
        return plan
    if many == "groups":
        return replace(plan, groups=(MOST_FEW, WarpgroupGemm(stages=3, patch=1)))
    own = (
        replace(usual.wide[1], patch=1)
        if usual.wide
        else Gemm(2, 8, 4, 2, patch=2, shared_totals=True)
    )
    assert own.shared_totals and (usual.wide is None) == (spec.scheme != "f16")
    return replace(plan, wide=(ROWS, own))


BY_DAY = {"wide": ("floats, residual",), "groups": ("4 bits, norm and gate", "8 bits, residual")}


@pytest.mark.parametrize(
    ("case", "many"),
    [
        pytest.param(
            case,
            many,
            marks=()
            if case in BY_DAY.get(many, set(CASES) - set(BY_NIGHT))
            else pytest.mark.nightly,
            id=f"{case}, {many}" if many else case,
        )
        for many in ("", "wide", "groups")
        for case in CASES
    ],
)
def test_fused_linear(build, case, many):
    spec = spec_of(CASES[case])
    n, k, scheme, y_dtype = spec.out_features, spec.in_features, spec.scheme, spec.y_dtype
    rng, count = np.random.default_rng(n + k), WIDE_ROWS if many else ROWS
    kernel = tensor_cores.fused_linear(spec, plan=plan_of(spec, many))
    compute = build(kernel.compute)
    stored, weight = portable(rng, n, k, scheme, spec.scale_dtype)
    packed = numpy_layout(stored, n, k, scheme)
    x = rng.standard_normal((count, k)).astype(spec.x_dtype)
    norm = rng.uniform(0.5, 2, k).astype("float32") / (16 if scheme == "q8" else 1)  # y is finite
    r = rng.standard_normal((count, spec.width)).astype("float32")
    ((shape, _),) = kernel.scratch

    def run(rows):
        y = np.full((len(rows), spec.width), np.nan, y_dtype)
        z = np.full([len(rows) if d == "m" else d for d in shape], np.nan, "float16")
        inputs = [
            x[rows],
            *([norm] if spec.norm_eps else []),
            packed,
            *([r[rows]] if spec.residual else []),
        ]
        *_, y, z = compute(*inputs, y, z)
        return y, z if spec.norm_eps or spec.x_dtype != HALF else x[rows]

    def error(y, exact):
        return np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2))

    y, z = run(np.arange(count))
    if many == "groups":  # they have their own order of x
        parts = (np.arange(i, min(i + MOST_FEW, count)) for i in range(0, count, MOST_FEW))
        z = np.concatenate([run(rows)[1] for rows in parts])
    assert error(y, expected(spec, x, weight, norm, r)) < BOUND[y_dtype]
    # With z as it was multiplied: nothing but the order of the sums is left.
    bare = FusedLinearSpec.from_json(
        spec.to_json().replace('"norm_eps": 1e-05', '"norm_eps": null')
    )
    assert error(y, expected(bare, z, by_float16(scheme, weight), norm, r)) < REST[y_dtype]
    # One row, a few and many go to different kernels: the same bits.
    for some in ([3], [0, 69, 5], range(60, 72), range(40), range(ROWS), rng.permutation(count)):
        assert np.array_equal(run(np.array(some))[0], y[np.array(some)])


def test_large_numbers(build):
    """A row that float16 cannot hold is held at its largest number; a NaN stays in its own row."""
    spec = FusedLinearSpec(
        out_features=16, in_features=64, scheme="f16", scale_dtype=None, y_dtype="float16"
    )
    kernel = tensor_cores.fused_linear(spec)
    x = np.zeros((4, 64), "float32")
    x[0, 0], x[1, 1], x[2, 2], x[3, :3] = 1e6, np.nan, -1e-6, (np.inf, 1, 1)
    weight = np.zeros((16, 64), "float16")
    weight[:, 0], weight[:, 1], weight[:, 2] = 2.0, 1.0, 1.0
    packed = numpy_layout([weight], 16, 64, "f16")
    empty = np.full((4, 16), np.nan, "float16")
    y, z = build(kernel.compute)(x, packed, empty, np.zeros((4, 64), "float16"))[-2:]
    assert z[0, 0] == 65504 and z[2, 2] == 0 and np.isinf(z[3, 0])
    assert np.array_equal(y[[0, 2]], np.repeat(np.float16([[65504], [0]]), 16, 1))
    assert np.isnan(y[1]).all() and np.isinf(y[3]).all()


def test_what_has_tensor_cores():
    fits = {"out_features": 48, "in_features": 128, "scheme": "q4", "scale_dtype": "float16"}
    portable_limits = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152)
    for change, whether in (
        ({}, True),
        ({"scale_dtype": "float32"}, False),
        ({"scheme": "q8"}, True),
        ({"scheme": "q8", "scale_dtype": "float32"}, False),
        ({"scheme": "f32", "scale_dtype": None}, False),
        ({"scheme": "f16", "scale_dtype": None}, True),
        ({"in_features": 96}, False),
        ({"gated": True}, False),  # 24 columns are no row tiles
        ({"gated": True, "out_features": 64}, True),
    ):
        spec = FusedLinearSpec(**(fits | change))
        assert (KERNELS.fused_linear(spec).pack is not None) == whether, change
        assert GpuKernels(portable_limits, {}).fused_linear(spec).pack is None


@pytest.mark.parametrize(
    ("n", "gated", "rows", "many"),
    [
        (4096, False, 320, False),  # 16 blocks across: tiles of tokens have to be several
        (4096, False, 321, True),
        (28672, True, 32, False),
        (28672, True, 65, True),
        (128256, False, 33, True),
    ],
)
def test_plans(n, gated, rows, many):
    spec = FusedLinearSpec(
        out_features=n, in_features=4096, scheme="q4", scale_dtype="float16", gated=gated
    )
    plan = TensorCoreLinearPlan.of(spec)
    assert (rows > plan.gemv[-1][0]) == many
    assert [most for most, _ in plan.gemv] == sorted(most for most, _ in plan.gemv)
    largest = max(few.shared_bytes(spec, plan.slices) for _, few in plan.gemv)
    assert max(largest, plan.gemm.shared_bytes()) <= LIMITS.shared_memory_bytes
    assert plan.wide is None
    if gated:
        assert all(few.row_tiles % 2 == 0 for _, few in plan.gemv) and isinstance(
            plan.gemv[0][1], Gemv
        )


@pytest.mark.parametrize(
    ("n", "rows", "groups"),
    [
        (4096, 128, False),  # 32 blocks
        (4096, 129, True),
        (28672, 64, False),  # half a tile
        (28672, 65, True),
    ],
)
def test_warpgroups_are_for_prompts(n, rows, groups):
    for scheme, stages in (("q4", 4), ("q8", 4), ("f16", 6), ("q4_1", 4)):
        dtype = None if scheme == "f16" else "float16"
        spec = FusedLinearSpec(out_features=n, in_features=4096, scheme=scheme, scale_dtype=dtype)
        plan = TensorCoreLinearPlan.of(spec, MOST_SHARED, warpgroups=True)
        assert plan.groups and (rows > plan.groups[0]) == groups
        assert plan.gemv[-1][0] == plan.groups[0] and plan.groups[1].stages == stages
        assert plan.groups[1].shared_bytes(spec) <= MOST_SHARED
    huge = FusedLinearSpec(out_features=1 << 18, in_features=1 << 13, scheme="f16")
    assert TensorCoreLinearPlan.of(huge, MOST_SHARED, warpgroups=True).groups is None


@pytest.mark.parametrize(
    ("n", "rows", "wide"),
    [
        (4096, 640, False),  # 80 wide blocks, where 160 others fill the device better
        (4096, 641, True),
        (28672, 64, False),  # half a wide tile
        (28672, 65, True),
        (128256, 65, True),
    ],
)
def test_wide_tiles_are_for_long_prompts_of_floats(n, rows, wide):
    floats = FusedLinearSpec(out_features=n, in_features=4096, scheme="f16")
    plan, usual = TensorCoreLinearPlan.of(floats, MOST_SHARED), TensorCoreLinearPlan.of(floats)
    assert (plan.gemv, plan.gemm, usual.wide) == (usual.gemv, usual.gemm, None)
    assert plan.wide and (rows > plan.wide[0]) == wide
    assert plan.wide[0] >= plan.gemv[-1][0] and plan.wide[1].shared_bytes() == 176 << 10
    for kilobytes, stages in ((160, 2), (175, 2), (176, 3)):
        smaller = TensorCoreLinearPlan.of(floats, kilobytes << 10).wide
        assert smaller and smaller[1].stages == stages
        assert smaller[1].shared_bytes() <= kilobytes << 10
    # Half of all GPUs offer a block this much shared memory.
    assert TensorCoreLinearPlan.of(floats, (160 << 10) - 1).wide is None
    for scheme in ("q4", "q8"):
        integers = replace(floats, scheme=scheme, scale_dtype="float16")
        assert TensorCoreLinearPlan.of(integers, MOST_SHARED).wide is None

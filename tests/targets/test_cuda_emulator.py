"""The emulator of CUDA finds what would be wrong on a GPU: mistakes made on purpose."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from wherry.targets.kernels import FusedLinearSpec
from wherry.targets.kernels.gpu import tensor_cores
from wherry.targets.kernels.gpu.tensor_cores.plan import (
    Gemm,
    Gemv,
    StreamGemv,
    TensorCoreLinearPlan,
)

from ..support import cuda
from .test_cpu_linear import portable
from .test_tensor_core_linear import numpy_layout

linear = import_module("wherry.targets.kernels.gpu.tensor_cores.linear")
WAIT, BARRIER = "wait_for_copies<kStages - 2>();", "__syncthreads();"
WIDTH = "  constexpr int kWidth"
ONE, FEW, MANY, WIDE, LANES = 1, 2, 9, 65, "if (threadIdx.x % 32 < 16) "
SPEC = FusedLinearSpec(out_features=48, in_features=256, scheme="f16", x_dtype="float16")
PLAN = TensorCoreLinearPlan(
    gemv=((ONE, StreamGemv(1, 1, stages=2, walk=3)), (FEW, Gemv(1, 1))),
    gemm=Gemm(2, 1, 2, 3),
    slices=4,
    wide=(MANY, Gemm(2, 8, 1, 2, patch=1, shared_totals=True)),
)
WIDEST, TILES, ALL = (WIDE,), (MANY, WIDE), (ONE, FEW, MANY, WIDE)
MISTAKES = {  # what is written in the place of what, and with how many rows that shows
    "none": ("", "", ()),
    "no wait for copies": (WAIT, "", (ONE, *TILES)),
    "copies are waited for too late": (WAIT, "wait_for_copies<kStages - 1>();", (ONE, *TILES)),
    "no barrier after the copies": (f"{WAIT}\n      {BARRIER}", WAIT, TILES),
    "no barrier before the sums": (f"  {BARRIER}\n{WIDTH}", WIDTH, (FEW,)),
    "no barrier before the sums of a walk": (f"sums);\n    {BARRIER}", "sums);", (ONE,)),
    "a walk that leaves rows out": ("group += kBlocks) {", "group += 2 * kBlocks) {", (ONE,)),
    "a copy in the place that is read": (
        "kBlocks>(free,",
        "kBlocks>(own.memory + own.slot,",
        (ONE,),
    ),
    "a barrier for some": (f"{WAIT}\n      {BARRIER}", f"{WAIT} {LANES}{BARRIER}", TILES),
    "a multiplication by some": (
        "              multiply_add",
        f"{LANES} multiply_add",
        (FEW, MANY, WIDE),
    ),
    "another unit of a token": ("(unit ^ (unit / 8 % 2))", "unit", TILES),
    "totals that begin with what was there": ("own[i * kThreads] = {0, 0, 0, 0}", "", WIDEST),
    "totals in the place of copies": (
        "kStages * kTokenTiles * 1024);",
        "0);",
        WIDEST,
    ),
    "totals of two threads in one place": ("+ threadIdx.x)", "+ threadIdx.x / 2)", WIDEST),
    "sums that go on": ("sums[r][t][i] = 0.0f", "", TILES),
    "one patch of all": ("blockIdx.y / kAcross * kPatch + blockIdx.x", "blockIdx.x", WIDEST),
    "a block of other rows": ("blockIdx.y % kAcross", "0", WIDEST),
    "tokens of other tiles": ("(first + t) * 8 + lane / 4", "t * 8 + lane / 4", WIDEST),
    "a slice that begins early": ("slice * (k / kChunk)", "slice * (k / kChunk - 1)", ALL),
}
BY_DAY = ("no barrier after the copies",)


@pytest.mark.parametrize(
    "name", [pytest.param(m, marks=() if m in BY_DAY else pytest.mark.nightly) for m in MISTAKES]
)
@pytest.mark.nightly
def test_a_mistake_is_detected(monkeypatch, name):
    old, new, shown = MISTAKES[name]
    right = linear.source()
    assert old in right
    monkeypatch.setattr(linear, "source", lambda: right.replace(old, new) if old else right)
    compute = cuda.build(tensor_cores.fused_linear(SPEC, plan=PLAN).compute)
    rng = np.random.default_rng(5)
    stored, weight = portable(rng, 48, 256, "f16", None)
    packed = numpy_layout(stored, 48, 256, "f16")

    def wrong(rows):
        x = rng.standard_normal((rows, 256)).astype("float16")
        empty = np.full((rows, 48), np.nan, "float32")
        try:
            y = compute(x, packed, empty, np.zeros(1, "float16"))[-2]
        except RuntimeError:
            return True
        return not np.allclose(y, x.astype("float64") @ weight.T.astype("float64"), atol=1e-3)

    assert tuple(rows for rows in ALL if wrong(rows)) == shown


@pytest.mark.nightly
def test_scales_that_other_lanes_copy(monkeypatch):
    """Without a barrier of the warp a lane reads scales that are not there."""
    spec = FusedLinearSpec(
        out_features=32, in_features=128, scheme="q4", scale_dtype="float16", x_dtype="float16"
    )
    plan = TensorCoreLinearPlan(gemv=((ONE, StreamGemv(1, 1)),), gemm=Gemm(2, 1, 2, 3), slices=2)
    rng = np.random.default_rng(5)
    stored, weight = portable(rng, 32, 128, "q4", "float16")
    x = rng.standard_normal((1, 128)).astype("float16")
    right = linear.source()
    for without in (False, True):
        text = right.replace("      sync_warp();  //", "      //") if without else right
        assert (text == right) != without
        monkeypatch.setattr(linear, "source", lambda text=text: text)
        compute = cuda.build(tensor_cores.fused_linear(spec, plan=plan).compute)
        empty = np.full((1, 32), np.nan, "float32")
        packed = numpy_layout(stored, 32, 128, "q4")
        y = compute(x, packed, empty, np.zeros(1, "float16"))[-2]
        # of the size of y, which rounding scales and weights to float16 leaves
        close = np.allclose(y, x.astype("float64") @ weight.T.astype("float64"), atol=2e-2)
        assert close != without

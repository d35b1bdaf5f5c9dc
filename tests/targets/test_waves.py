"""Linears on AMD's matrix units: what they compute, emulated, and the code that they become."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from tvm.script import tirx as T

from wherry.targets.kernels import FusedLinearSpec
from wherry.targets.kernels.gpu import GpuLimits
from wherry.targets.kernels.gpu import emit as e
from wherry.targets.kernels.gpu.linear import operands, parameters
from wherry.targets.kernels.gpu.linear_plan import LinearTiling
from wherry.targets.kernels.gpu.waves import gemm
from wherry.targets.kernels.gpu.waves.units import UNITS, MatrixUnit
from wherry.targets.kernels.gpu.weights import fits_float16

from ..support import metal
from .test_cpu_linear import portable
from .test_fused_linear import expected

LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=65536)
SINGLE, HALF = "float32", "float16"
CASES = {  # unit, N, K, scheme, norm, gated, residual, dtypes of x and y
    "wmma": (2 * 84, 96, "q4", True, True, False, SINGLE, HALF),
    "wmma12": (70, 64, "q8", False, False, True, HALF, SINGLE),
    "mfma": (70, 64, "f16", False, False, True, SINGLE, SINGLE),
}


class Emulated(MatrixUnit):
    """A unit whose instruction is a function of the emulator's, in waves.h."""

    __slots__ = ("name",)

    @classmethod
    def of(cls, name):
        unit = UNITS[name]
        unit_copy = cls(**{f.name: getattr(unit, f.name) for f in fields(unit)})
        object.__setattr__(unit_copy, "name", name)
        return unit_copy

    def multiply(self, c, at, a, a_at, b, b_at):
        places = [
            buffer.access_ptr(mode, offset=first)
            for buffer, mode, first in ((c, "rw", at), (a, "r", a_at), (b, "r", b_at))
        ]
        T.evaluate(T.call_extern("void", f"waves_{self.name}", *places))


@pytest.mark.cpu
@pytest.mark.parametrize(
    "name", [pytest.param(c, marks=pytest.mark.nightly if c != "mfma" else ()) for c in CASES]
)
def test_gemm(name):
    n, k, scheme, normed, gated, residual, x_dtype, y_dtype = CASES[name]
    rng = np.random.default_rng(n + k)
    spec = FusedLinearSpec(
        out_features=n,
        in_features=k,
        scheme=scheme,
        scale_dtype=None if scheme == "f16" else HALF,
        norm_eps=1e-5 if normed else None,
        gated=gated,
        residual=residual,
        x_dtype=x_dtype,
        y_dtype=y_dtype,
    )
    assert fits_float16(spec)

    def emit(b, sizes):
        gemm.launch(LinearTiling.of(spec, LIMITS), operands(spec, b), sizes["m"], Emulated.of(name))

    compute = metal.build(e.prim_func(parameters(spec), emit))
    stored, weight = portable(rng, n, k, scheme, spec.scale_dtype)
    x = rng.standard_normal((70, k)).astype(x_dtype)
    norm = rng.uniform(0.5, 2, k).astype("float32")
    r = rng.standard_normal((70, spec.width)).astype("float32")

    def run(rows):
        y = np.full((len(rows), spec.width), np.nan, y_dtype)
        inputs = [x[rows], *([norm] if normed else []), *stored, *([r[rows]] if residual else [])]
        scratch = [np.full(len(rows), np.nan, "float32")] if normed else []
        with metal.lanes(UNITS[name].lanes):
            return compute(*inputs, y, *scratch)[len(inputs)]

    y = run(np.arange(70))
    exact = expected(spec, x, weight, norm, r)
    error = np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2))
    assert error < 6e-4  # of float16: x, dequantized weights and y
    for some in (range(9, 20), rng.permutation(70)):
        assert np.array_equal(run(np.array(some)), y[np.array(some)])

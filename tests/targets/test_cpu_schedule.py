"""The fallback schedule: what it does, that results stay, and that it leaves alone what it must."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx, topi

from wherry.targets.kernels import SwiGLUSpec
from wherry.targets.kernels.cpu import CpuKernels

pytestmark = pytest.mark.cpu


def test_elementwise_chain_becomes_one_vector_loop(here):
    a, b = te.placeholder((64, 48)), te.placeholder((64, 48))
    func = te.create_prim_func([a, b, topi.tanh(topi.add(topi.multiply(a, b), a))])
    scheduled = CpuKernels(here.isa).schedule(func)
    assert "T.vectorized(16)" in scheduled.script()
    assert "sblock_alloc_buffer" not in scheduled.script()
    x, y = np.random.default_rng(0).standard_normal((2, 64, 48)).astype("float32")
    out = here.build(scheduled)(x, y, np.zeros_like(x))[-1]
    np.testing.assert_allclose(out, np.tanh(x * y + x), atol=1e-6)


def test_symbolic_rows(here):
    x = te.placeholder((tirx.Var("n", "int64"), 8, 64))
    func = te.create_prim_func([x, topi.nn.softmax(x, axis=-1)])
    scheduled = CpuKernels(here.isa).schedule(func)
    assert "T.vectorized(16)" in scheduled.script()
    value = np.random.default_rng(1).standard_normal((3, 8, 64)).astype("float32")
    out = here.build(scheduled)(value, np.zeros_like(value))[-1]
    expected = np.exp(value) / np.exp(value).sum(-1, keepdims=True)
    np.testing.assert_allclose(out, expected, atol=1e-6)


def test_only_large_work_runs_in_parallel(here):
    kernels = CpuKernels(here.isa)
    for rows, parallel in ((16, False), (1024, True)):
        x = te.placeholder((rows, 1024))
        for result in (topi.nn.relu(x), topi.sum(x, axis=1)):
            script = kernels.schedule(te.create_prim_func([x, result])).script()
            assert ("T.parallel" in script) == parallel


def test_kernels_are_left_alone(here):
    kernels = CpuKernels(here.isa)
    kernel = kernels.swiglu(SwiGLUSpec(dim=64))
    assert kernels.schedule(kernel).same_as(kernel)

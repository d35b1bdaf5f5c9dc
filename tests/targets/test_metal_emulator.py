"""The emulator of Metal finds what would be wrong on a device."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import tvm
import tvm_ffi

from ..support import metal

pytestmark = pytest.mark.cpu
THREADS = 64
KERNEL = """#include <metal_stdlib>
using namespace metal;
struct neighbours_args_t {{ long n; }};
kernel void neighbours(device float* x [[ buffer(0) ]], device float* y [[ buffer(1) ]],
    constant neighbours_args_t& arg [[ buffer(2) ]],
    uint blockIdx [[threadgroup_position_in_grid]],
    uint threadIdx [[thread_position_in_threadgroup]]) {{
  threadgroup float shared[{size}];
  int t = (int)threadIdx;
  {body}
}}
"""
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
SUM = "y[blockIdx * 64 + t] = shared[(t + 63) % 64] + shared[(t + 1) % 64] + (float)arg.n;"
STORE = "shared[t] = x[blockIdx * 64 + t];"


def run(body, size=THREADS):
    """y of three groups."""
    there = metal.device()
    tags = ["blockIdx.x", "threadIdx.x"]
    source = metal.as_cplusplus({"neighbours": (tags, KERNEL.format(body=body, size=size))})
    kernel = tvm_ffi.load_module(str(metal.kernel_library(source)))["neighbours"]
    x = np.arange(3 * THREADS, dtype="float32")
    arrays = [tvm.runtime.tensor(a, there) for a in (x, np.zeros_like(x))]
    # As the host's code calls it: with pointers, of which only the device knows what they are.
    pointers = [ctypes.c_void_p(a.data_ptr()) for a in arrays]
    kernel(*pointers, 5, 3, THREADS)
    return arrays[1].numpy().reshape(3, THREADS)


def test_neighbours_of_a_group():
    x = np.arange(3 * THREADS, dtype="float32").reshape(3, THREADS)
    expected = np.roll(x, 1, 1) + np.roll(x, -1, 1) + 5
    assert np.array_equal(run(f"{STORE} {BARRIER} {SUM}"), expected)
    assert not np.array_equal(run(f"{STORE} {SUM}"), expected)  # the barrier is missing


def test_what_nobody_wrote_is_no_number():
    y = run(f"if (t != 7) {{ {STORE} }} {BARRIER} {SUM}")
    assert np.isnan(y[:, [6, 8]]).all() and np.isfinite(np.delete(y, [6, 8], 1)).all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"{STORE} if (t < 32) {{ {BARRIER} }} {SUM}", "reached by all threads"),
        (f"{STORE}\nif (t < 32) {{ {BARRIER} }}\nelse {{ {BARRIER} }} {SUM}", "reached by all"),
    ],
)
def test_a_barrier_for_some(body, said):
    with pytest.raises(RuntimeError, match=said):
        run(body)


def test_limits():
    assert run(f"{STORE} {BARRIER} {SUM}", size=8192).shape == (3, THREADS)
    with pytest.raises(ValueError, match="uses 32772 bytes a group"):
        run(f"{STORE} {BARRIER} {SUM}", size=8193)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("double z = 1; y[t] = (float)z;", "metal_has_no_double"),
        ("y[t] = min(x[t], 1);", "is ambiguous"),
        ("y[t] = erf(x[t]);", "undeclared identifier"),
        ("threadgroup_barrier(mem_flags::all);", "no member named 'all'"),
    ],
)
def test_what_is_not_metal_does_not_compile(body, said):
    with pytest.raises(AssertionError, match=said):
        run(body)

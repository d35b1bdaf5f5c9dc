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


# y = x x of 8 x 8 numbers; both SIMD groups of a threadgroup do the same.
MATRICES = """simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  threadgroup float copy[64];
  copy[t] = x[blockIdx * 64 + t];
  {barrier}
  simdgroup_load(a, {place}, 8, 0, false);
  simdgroup_load(b, copy, 8, 0, {transposed});
  {when} simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, shared, 8, 0, false);
  {barrier}
  y[blockIdx * 64 + t] = {result};"""


def matrices(place="copy", transposed="false", when="", result="shared[t]"):
    texts = {"barrier": BARRIER, "place": place, "transposed": transposed}
    return run(MATRICES.format(**texts, when=when, result=result)).reshape(3, 8, 8)


def test_matrices_of_a_simd_group():
    x = np.arange(3 * THREADS, dtype="float32").reshape(3, 8, 8)
    assert np.array_equal(matrices(), x @ x)  # numbers so small that sums are exact
    assert np.array_equal(matrices(transposed="true"), x @ x.transpose(0, 2, 1))
    own = run("y[blockIdx * 64 + t] = simd_shuffle_xor(x[blockIdx * 64 + t], (ushort)5);")
    assert np.array_equal(own.ravel(), x.ravel()[np.arange(3 * THREADS) ^ 5])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"when": "if (t != 40)"}, "thread 32 is at line .* and thread 40 at line 0"),
        ({"when": "if (t < 16)"}, "a SIMD group does that with all its lanes"),
        ({"place": "copy + t / 31"}, "loaded from different places"),
    ],
)
def test_matrices_that_lanes_do_not_share(changed, said):
    with pytest.raises(RuntimeError, match=said):
        matrices(**changed)


def test_what_a_lane_has_of_a_matrix_is_nobody_s_to_know():
    with pytest.raises(AssertionError, match="no member named 'thread_elements'"):
        matrices(result="c.thread_elements()[0]")
    nothing = run("simdgroup_float8x8 a; simdgroup_store(a, shared, 8); y[t] = shared[t];")
    assert np.isnan(nothing[0]).all()

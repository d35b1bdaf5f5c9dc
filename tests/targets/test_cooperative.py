"""Vulkan's cooperative matrices: what kernels compute, the code that they become, who runs it.

A driver that multiplies matrices on a CPU is lavapipe of Mesa 26.2; where there is none, kernels
are emulated, and their SPIR-V is read here.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.target import Target

from wherry.errors import ToolchainError, UsageError
from wherry.targets import cpu
from wherry.targets.kernels.gpu import GpuKernels, GpuLimits
from wherry.targets.kernels.gpu.weights import fits_float16
from wherry.targets.spirv import generation as spirv
from wherry.targets.spirv import matrices as spirv_matrices
from wherry.targets.spirv import naga
from wherry.targets.spirv.code import instructions, words_of
from wherry.targets.spirv.matrices import SHAPES
from wherry.targets.storage_half import with_single_halves
from wherry.targets.target import find
from wherry.targets.toolchains.toolchain import require

from ..support import gpu, metal
from .test_device_experts import CASES as EXPERTS
from .test_device_experts import expert_linear
from .test_fused_linear import HALF, ROWS, SINGLE, fused_linear, spec_of

LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=32768, cooperative_matrices=True)
KERNELS = GpuKernels(LIMITS, {})
CASES = {  # as in test_fused_linear
    "norm and gate": (2 * 40, 64, "q4", HALF, True, True, False, SINGLE, HALF),
    "residual": (70, 64, "q8", HALF, False, False, True, HALF, SINGLE),
    "float16": (70, 64, "f16", None, True, False, False, SINGLE, SINGLE),
}
NIGHTLY = ("residual", "float16")
BY_DAY = [pytest.param(c, marks=pytest.mark.nightly if c in NIGHTLY else ()) for c in CASES]


def check(build, case):
    spec = spec_of(CASES[case])
    assert fits_float16(spec)
    rng = np.random.default_rng(spec.out_features + spec.in_features)
    run, exact = fused_linear(build, KERNELS, spec, rng)
    y = run(np.arange(ROWS))
    error = np.sqrt(np.mean((y - exact) ** 2) / np.mean(exact**2))
    assert error < 6e-4  # of float16: x, dequantized weights and y
    for some in (range(9, 20), rng.permutation(ROWS)):  # a row's bits, in any company
        assert np.array_equal(run(np.array(some)), y[np.array(some)])
    few = run(np.arange(3))  # by other kernels, which do not round
    assert np.allclose(few, y[:3], rtol=0, atol=4e-3 * np.abs(y).max())


@pytest.mark.cpu
@pytest.mark.parametrize("case", BY_DAY)
def test_emulated(case):
    check(metal.build, case)


def check_experts(build):
    """Gates, and sums over a row's experts; tiles of some rows, and of none."""
    gate, plain = EXPERTS[0], EXPERTS[4]
    for spec in (gate, replace(plain, routed=True, top_k=2, combined=True)):
        run, y = expert_linear(build, KERNELS, spec, bound=6e-4)
        some = np.random.default_rng(1).permutation(len(y))
        assert np.array_equal(run(some), y[some])


@pytest.mark.cpu
@pytest.mark.nightly
def test_emulated_experts():
    check_experts(metal.build)


@pytest.mark.gpu
@pytest.mark.nightly
def test_experts_on_a_device():
    on_a_device(check_experts)


@pytest.mark.gpu
@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_on_a_device(case):
    on_a_device(partial(check, case=case))


def on_a_device(run):
    """Where it has no matrices, the words say what to type."""
    try:
        run(partial(gpu.build, "vulkan"))
    except RuntimeError as e:
        assert "multiplies float16 matrices (16x16x16 by 32 threads, 8x16x16 by" in str(e)
        assert "compile with --target vulkan" in str(e)
        pytest.skip("the Vulkan device multiplies no matrices")


@pytest.fixture(scope="module")
def sources():
    """WGSL of a linear's kernels, as TVM writes it."""
    spec = spec_of(CASES["norm and gate"])
    func = with_single_halves(KERNELS.fused_linear(spec).compute)
    module = tvm.IRModule({"k": func.with_attr("global_symbol", "k")})
    target = Target({"kind": "webgpu", "max_num_threads": 256}, host=dict(cpu.host()))
    (built,) = tvm.compile(module, target=target).mod.imports
    return spirv.kernels_of(str(built.inspect_source("wgsl")))


AT = r"(\w+)\[(matrix_\w+) \* (\d+)u(?: \+ (matrix_\w+))? \+ (\d+)u\]"
LOAD = re.compile(rf"let (\w+) = coopLoad(T?)<coop_mat16x16<f16, ([AB])>>\(&{AT}, (\d+)u\);")
MULTIPLY = re.compile(r"(c\w+) = coopMultiplyAdd\((\w+), (\w+), (\w+)\);")
STORE = re.compile(rf"coopStoreT\((\w+), &{AT}, (\d+)u\);")


def played(wgsl, shape, x, w):
    """The tile of sums that the words for matrices give, whose rows have 40 and 68 elements."""
    sums = np.full(64 * 68, np.nan)
    groups = re.search(r"matrix_row : u32 = matrix_group / (\d+)u \* (\d+)u;", wgsl)
    across, rows = map(int, groups.groups())
    width = int(re.search(r"matrix_group % \d+u \* (\d+)u;", wgsl)[1])
    for group in range(128 // shape.lanes):
        at = {"matrix_row": group // across * rows, "matrix_column": group % across * width}
        names = re.findall(r"var (c\w+) : coop", wgsl)
        matrices = {name: np.zeros((shape.m, shape.n)) for name in names}

        def place(groups, lines, columns, at=at):
            _, first, stride, second, offset, own = groups
            assert stride == own
            begin = at[first] * int(stride) + at.get(second, 0) + int(offset)
            return begin + np.arange(lines)[:, None] * int(stride) + np.arange(columns)

        for name, by_rows, use, *fields in LOAD.findall(wgsl):
            if use == "A":
                assert by_rows
                matrices[name] = x[place(fields, shape.m, shape.k)]
            else:
                assert not by_rows
                matrices[name] = w[place(fields, shape.n, shape.k)].T
        for into, a, b, c in MULTIPLY.findall(wgsl):
            assert into == c
            matrices[c] = matrices[c] + matrices[a] @ matrices[b]
        for name, *fields in STORE.findall(wgsl):
            where = place(fields, shape.m, shape.n)
            assert np.isnan(sums[where]).all()
            sums[where] = matrices[name]
    return sums.reshape(64, 68)[:, :64]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_is_the_same_product(sources, shape):
    rng = np.random.default_rng(shape.lanes)
    x, w = rng.integers(-9, 9, (2, 64 * 40)).astype("float64")
    (kernel,) = filter(spirv_matrices.multiplies_matrices, sources.values())
    exact = x.reshape(64, 40)[:, :32] @ w.reshape(64, 40)[:, :32].T
    assert np.array_equal(played(spirv_matrices.written(kernel, shape), shape, x, w), exact)


@pytest.fixture(scope="module")
def codes(sources):
    """SPIR-V of the kernel with matrices, for each of SHAPES."""
    try:
        require("vulkan", naga.requirements())
    except ToolchainError as e:
        gpu.missing("vulkan", str(e))
    (name,) = (n for n, s in sources.items() if spirv_matrices.multiplies_matrices(s))
    return spirv.code_of({name: sources[name]})[name]


def test_sizes_and_memory_are_in_the_code(codes):
    for code, shape in zip(codes, SHAPES, strict=True):
        words = words_of(code)
        assert words[1] == 0x00010300
        every = list(instructions(words))
        value = {i[2]: i[3] for o, i in every if o == 43}
        sizes = {value[i[6]]: (value[i[4]], value[i[5]]) for o, i in every if o == 4456}
        assert sizes == {
            0: (shape.m, shape.k), 1: (shape.k, shape.n), 2: (shape.m, shape.n)
        }  # fmt: skip
        assert {value[i[3]] for o, i in every if o == 224} == {0x6108}
        assert all(i[-1] == 0x20 for o, i in every if o in (4457, 4458))
        capabilities = {i[1] for o, i in every if o == 17}
        assert capabilities == {1, 9, 61, 4433, 5345, 6022}  # Shader, halves, subgroups, matrices
        results = [i[2] for o, i in every if o in (43, 4457)]
        assert len(set(results)) == len(results) and max(results) < words[3]


@pytest.mark.nightly
def test_code_is_valid(codes, tmp_path):
    if not shutil.which("spirv-val"):
        gpu.missing("vulkan", "no spirv-val")
    for i, code in enumerate(codes):
        path = tmp_path / f"{i}.spv"
        path.write_bytes(code)
        command = ["spirv-val", "--target-env", "vulkan1.3", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if "Invalid capability operand: 6022" in done.stderr:
            pytest.skip("this spirv-val is older than cooperative matrices")
        assert done.returncode == 0, done.stderr


def test_the_target_says_what_it_is():
    preset = find("vulkan:matrices")
    assert preset.name == "vulkan:matrices" and preset.fast_math
    assert preset.device["max_shared_memory_per_block"] == 32768
    assert not find("vulkan").fast_math
    with pytest.raises(UsageError, match="64, 128, 256; or matrices"):
        find("vulkan:tensor")


def text(value):
    return struct.pack("<Q", len(value)) + value


@pytest.mark.gpu
def test_a_device_without_the_shape_says_so():
    """And code that is not what the numbers say is refused."""
    gpu.device("vulkan")
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.vulkan")
    code = struct.pack("<2I", 0x07230203, 0)

    def blob(*edition):
        numbers = (0, 0, 128, 1, 1, *edition)
        packed = struct.pack(f"<Q{len(numbers)}i", len(numbers), *numbers)
        one = struct.pack("<Q", 1) + text(b"k") + 2 * bytes(8)
        return text(b"wherry-spirv-2") + one + packed + text(code)

    module = load(blob(3, 5, 7, 11, 8))
    with pytest.raises(RuntimeError) as error:
        module["k"]()
    words = str(error.value)
    assert "kernel k multiplies float16 matrices (3x5x7 by 11 threads), which the" in words
    assert words.endswith("compile with --target vulkan")
    for wrong, why in (((3, 5, 7, 11, 12), "not SPIR-V"), ((3, 5, 7, 11), "has 9 numbers")):
        with pytest.raises(ValueError, match=why):
            load(blob(*wrong))

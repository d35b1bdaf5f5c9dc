"""Linears on tensor cores as machine code: what NVIDIA's assembler says of registers and spills."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

import pytest

from wherry.targets.kernels import FusedLinearSpec, PagedAttentionSpec
from wherry.targets.kernels.gpu import GpuLimits, tensor_cores
from wherry.targets.kernels.gpu.tensor_cores import attention, packing
from wherry.targets.kernels.gpu.tensor_cores.linear import source as own_source
from wherry.targets.toolchains.cuda import fatbin_command, waiting

from ..support import cuda
from .test_cuda import nvcc as nvcc

pytestmark = pytest.mark.cpu
REGISTERS = 65536  # of a multiprocessor, all that are known
GIVEN = re.compile(
    r"entry function '(\w+)' for '(sm_\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
    r"(\d+) bytes spill loads.*?Used (\d+) registers",
    re.S,
)


CODES = ("sm_80", "sm_90", "sm_100", "sm_120")
ONE_TILE = re.compile(r"gemv(?:_stream)?<\S+ \d+, \d+, \d+, 1, ")


@dataclass(frozen=True)
class Given:
    """What the assembler gave a kernel."""

    kernel: str
    code: str
    stack: int  # bytes
    spilled: int  # bytes, stored and loaded
    registers: int
    threads: int  # of a block


def assembled(func, nvcc, codes, folder):
    """The code of each kernel for each GPU, from one PTX as in libraries."""
    text = cuda.source(func)
    if int(codes[0].removeprefix("sm_")) >= 90:
        text = waiting(text)
    path = folder / "kernels.cu"
    path.write_text(text)
    command = [*fatbin_command(codes, nvcc), "-Xptxas=-v", "-o", str(folder / "out"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    threads = dict(
        (name, int(n)) for n, name in re.findall(r"__launch_bounds__\((\d+)[^)]*\) (\w+)\(", text)
    )
    counts = [
        Given(name, code, int(stack), int(stores) + int(loads), int(registers), threads[name])
        for name, code, stack, stores, loads, registers in GIVEN.findall(done.stderr)
    ]
    assert len(counts) == len(threads) * len(codes), done.stderr
    return counts


@pytest.mark.nightly
def test_warpgroups_multiply_while_they_compute(nvcc, tmp_path):
    """The assembler says where it makes multiplications wait for each other."""
    for name in ("o", "gate_up of floats"):
        func = tensor_cores.fused_linear(SHAPES[name], 227 << 10, warpgroups=True).compute
        given = assembled(func, nvcc, ("sm_90",), tmp_path)
        assert not [g for g in given if g.stack or g.spilled], given
        assert [g for g in given if g.threads == 384]
        command = [*fatbin_command(("sm_90",), nvcc), "-Xptxas=-v", "-o", str(tmp_path / "out")]
        done = subprocess.run(
            [*command, str(tmp_path / "kernels.cu")], capture_output=True, text=True
        )
        assert "serialized" not in done.stderr


def spec_of(n, k, scheme, **more):
    scale_dtype = "float16" if scheme == "q4" else None
    floats = {"x_dtype": "float16"} | more
    return FusedLinearSpec(
        out_features=n, in_features=k, scheme=scheme, scale_dtype=scale_dtype, **floats
    )


def check(func, nvcc, codes, folder, rest=False):
    """`rest`: there are kernels that are not of tensor cores, and not looked at."""
    given = assembled(func, nvcc, codes, folder)
    text = (folder / "kernels.cu").read_text()
    calls = {g: text.rpartition(f" {g.kernel}(")[2].partition("\n}")[0] for g in given}
    calls = {g: call for g, call in calls.items() if "wherry::" in call or not rest}
    assert not [g for g in calls if g.stack or g.spilled], given
    for g, call in calls.items():
        # What reads weights for up to eight rows: two blocks share a multiprocessor.
        blocks = 2 if ONE_TILE.search(call) else 1
        assert g.registers * g.threads * blocks <= REGISTERS, g
    for g in given:
        print(g.code, g.kernel, g.registers, "registers,", g.threads, "threads")
    return [g for g, call in calls.items() if ONE_TILE.search(call)]


# Llama-3.1-8B's; the first by day.
SHAPES = {
    "o": spec_of(4096, 4096, "q4", residual=True),
    "qkv": spec_of(6144, 4096, "q4", norm_eps=1e-5, x_dtype="float32", y_dtype="float16"),
    "gate_up": spec_of(
        28672, 4096, "q4", norm_eps=1e-5, gated=True, x_dtype="float32", y_dtype="float16"
    ),
    "down": spec_of(4096, 14336, "q4", residual=True),
    "o of floats": spec_of(4096, 4096, "f16", residual=True),
    "gate_up of floats": spec_of(
        28672, 4096, "f16", norm_eps=1e-5, gated=True, x_dtype="float32", y_dtype="float16"
    ),
}


def test_one_gpu(nvcc, tmp_path):
    func = tensor_cores.fused_linear(SHAPES["o"]).compute
    (_one_tile,) = check(func, nvcc, ("sm_90",), tmp_path)
    text = (tmp_path / "kernels.cu").read_text()
    assert text.count("#define WHERRY_GEMM") >= 1 and "wherry::gemm<" in text
    assert "mma.sync.aligned.m16n8k16" in own_source()


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHAPES)
def test_all_gpus(nvcc, tmp_path, name):
    check(tensor_cores.fused_linear(SHAPES[name]).compute, nvcc, CODES, tmp_path)


WIDE = [(163, ("sm_80", "sm_90")), (227, ("sm_90", "sm_100"))]  # KB of a block, GPUs that have them
FLOATS = SHAPES | {
    "qkv of floats": spec_of(
        6144, 4096, "f16", norm_eps=1e-5, x_dtype="float32", y_dtype="float16"
    ),
    "down of floats": spec_of(4096, 14336, "f16", residual=True),
    "a small one": spec_of(896, 896, "f16", residual=True),
    "a vocabulary": spec_of(151936, 4096, "f16", x_dtype="float32"),
}
FLOATS = {name: spec for name, spec in FLOATS.items() if spec.scheme == "f16"}


@pytest.mark.nightly
@pytest.mark.parametrize(("kilobytes", "codes"), WIDE)
@pytest.mark.parametrize("name", FLOATS)
def test_wide_tiles(nvcc, tmp_path, name, kilobytes, codes):
    check(tensor_cores.fused_linear(FLOATS[name], kilobytes << 10).compute, nvcc, codes, tmp_path)
    text = (tmp_path / "kernels.cu").read_text()
    stages = 2 if "sm_80" in codes else 3
    assert len(re.findall(rf", 2, 16, 8, {stages}, 16, true, \w+, \w+, [\w:]+>\(", text)) == 1


@pytest.mark.nightly
def test_packing_spills_nothing(nvcc, tmp_path):
    check(packing.pack(SHAPES["o"].linear()), nvcc, ("sm_80",), tmp_path)


LIMITS = GpuLimits(threads_per_block=1024, shared_memory_bytes=49152, tensor_cores=True)
MOST_SHARED = 99 << 10  # bytes of a block, on every GPU from sm_80 on


ALONE = ("sm_90",)
HEADS = [  # size, query heads of a key-value head, cap, GPUs: from the PTX of the first
    (64, 4, None, CODES),
    (64, 8, None, ALONE),
    (80, 1, None, CODES),
    (96, 1, None, CODES),
    (128, 4, None, CODES),
    (128, 4, None, ALONE),
    (128, 16, 30.0, CODES),
    (256, 2, 50.0, CODES),
    (256, 16, None, ALONE),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("size", "group", "softcap", "codes"), HEADS)
def test_attention(nvcc, tmp_path, size, group, softcap, codes):
    """Heads of all sizes, as models share them and up to the most."""
    spec = PagedAttentionSpec(
        heads=8 * group,
        kv_heads=8,
        head_dim=size,
        rotary_dim=size,
        inv_freq=tuple(10000.0 ** (-2 * i / size) for i in range(size // 2)),
        scale=size**-0.5,
        softcap=softcap,
        kv_dtype="float16",
        qkv_dtype="float16",
        out_dtype="float16",
    )
    assert attention.shared_of_rows(size) <= MOST_SHARED
    assert attention.shared_of_splits(spec, unsplit=True) <= MOST_SHARED
    kernel = tensor_cores.paged_attention(spec, LIMITS)
    check(kernel.compute, nvcc, codes, tmp_path, rest=True)


def test_every_size_of_heads_is_assembled():
    assert {size for size, _, _, codes in HEADS if codes == CODES} == set(attention.HEAD_SIZES)

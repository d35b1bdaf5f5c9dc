"""NVIDIA's GPUs: "cuda" is any since A100, "cuda:sm_90" and "cuda:sm_80+sm_90" those named.

A library holds machine code for each, and PTX, which drivers compile for newer ones.
"""

from __future__ import annotations

from typing import Any

from .cpu import host
from .cuda_toolchain import CudaToolchain
from .kernels.by_name import KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .target import TargetPreset
from .variants import CUDA_CODES, chosen

USUAL = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")  # PTX serves the others
THREADS = 1024  # of a block
SHARED_MEMORY_BYTES = 49152  # that a kernel may declare; more has to be asked for at the launch
WARP = 32


def preset(variant: str | None) -> TargetPreset:
    """The preset of the GPUs whose codes `variant` has, with "+" between them.

    Raises:
        UsageError: there is no such code.
    """
    codes = USUAL if variant is None else chosen("cuda", variant, CUDA_CODES, several=True)
    device: dict[str, Any] = {
        "kind": "cuda",
        "arch": codes[0],
        "max_threads_per_block": THREADS,
        "max_num_threads": THREADS,
        "max_shared_memory_per_block": SHARED_MEMORY_BYTES,
        "thread_warp_size": WARP,
    }
    limits = GpuLimits(threads_per_block=THREADS, shared_memory_bytes=SHARED_MEMORY_BYTES)
    return TargetPreset(
        name="cuda" if variant is None else f"cuda:{'+'.join(codes)}",
        device=device,
        host=host(),
        library="so",
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(GpuKernels(limits, device)),
        toolchain=CudaToolchain(codes),
        codes=codes,
    )

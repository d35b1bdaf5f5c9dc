"""Targets for NVIDIA GPUs: "cuda" (A100 and newer), or codes: "cuda:sm_90", "cuda:sm_80+sm_90".

A library has machine code for each of these GPUs, and PTX, which drivers compile for newer ones.
"""

from __future__ import annotations

from .gpu import gpu_preset
from .kernels.gpu import GpuLimits
from .target import TargetPreset
from .toolchains.cuda import CudaToolchain
from .variants import CUDA_CODES, chosen

# default GPUs; newer ones compile the library's PTX
USUAL = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
THREADS = 1024  # threads of a thread block
# bytes of static shared memory per block; a launch may request more as dynamic memory
SHARED_MEMORY_BYTES = 49152
# Dynamic shared memory in bytes that a launch may request (CUDA's table of compute capabilities).
OPTIN_SHARED_BYTES = {
    **dict.fromkeys(("sm_80", "sm_87"), 163 << 10),
    **dict.fromkeys(("sm_86", "sm_89", "sm_120", "sm_121"), 99 << 10),
    **dict.fromkeys(("sm_90", "sm_100", "sm_103", "sm_110"), 227 << 10),
}
WARP = 32
# GPUs whose tensor cores lack the m16n8k16 shape that the kernels use
WITHOUT_TENSOR_CORES = frozenset({"sm_75"})
WITH_WARPGROUPS = frozenset({"sm_90"})


def preset(variant: str | None) -> TargetPreset:
    """Return the preset of the GPUs with the codes in `variant`, separated by "+".

    Raises:
        UsageError: there is no such code.
    """
    codes = USUAL if variant is None else chosen("cuda", variant, CUDA_CODES, several=True)
    optin = min(OPTIN_SHARED_BYTES.get(code, 0) for code in codes)
    limits = GpuLimits(
        threads_per_block=THREADS,
        shared_memory_bytes=SHARED_MEMORY_BYTES,
        optin_shared_bytes=optin,
        tensor_cores=WITHOUT_TENSOR_CORES.isdisjoint(codes),
        warpgroups=WITH_WARPGROUPS.issuperset(codes),
    )
    return gpu_preset(
        "cuda" if variant is None else f"cuda:{'+'.join(codes)}",
        limits,
        {"kind": "cuda", "arch": codes[0], "thread_warp_size": WARP},
        toolchain=CudaToolchain(codes),
        codes=codes,
        optin_shared_bytes=optin,
    )

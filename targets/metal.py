"""Targets for Mac GPUs: "metal" for macOS programs, "metal:macabi" for Mac Catalyst apps.

Supported Macs have M1 or later: their SIMD groups multiply matrices, as on phones since A14.

TVM generates Metal source, which the device's driver compiles when a program loads it: TVM's own
runtime with fast math, which may reorder sums, so a row's last bits may depend on its batch; the
plugin for apps (engine/backends/metal) without. All of Apple's GPUs since A11 and M1 have
threadgroups of 1024 threads, SIMD groups of 32 threads, and 32 KiB of threadgroup memory.
"""

from __future__ import annotations

from . import hosts
from .gpu import gpu_preset
from .kernels.gpu import GpuLimits
from .target import TargetPreset
from .variants import chosen

THREADS = 256  # threads of a threadgroup: kernels that use many registers cannot have all 1024
SHARED_MEMORY_BYTES = 32768
BUFFERS = 31  # arguments of a kernel; one of them holds the scalars
SIMD_WIDTH = 32
VARIANTS = {"macabi": "apps of Mac Catalyst"}  # variant, named after its host -> description


def preset(variant: str | None) -> TargetPreset:
    """Return the preset of a Mac's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        return apple_gpu("metal", "macos", simdgroups=True)
    (host,) = chosen("metal", variant, VARIANTS)
    return apple_gpu(f"metal:{variant}", host, simdgroups=True)


def apple_gpu(name: str, host: str, *, simdgroups: bool) -> TargetPreset:
    """Return the preset of an Apple GPU.

    Args:
        name: name of the target, as typed.
        host: name of the host whose programs drive the GPU.
        simdgroups: whether all GPUs of the target are of Apple's family 7 or later.
    """
    limits = GpuLimits(
        threads_per_block=THREADS,
        shared_memory_bytes=SHARED_MEMORY_BYTES,
        storage_buffers=BUFFERS - 1,
        simdgroups=simdgroups,
    )
    return gpu_preset(
        name,
        limits,
        {"kind": "metal", "max_function_args": BUFFERS, "thread_warp_size": SIMD_WIDTH},
        there=hosts.HOSTS[host],
        hosts=hosts.APPLE,
        fast_math=True,
    )

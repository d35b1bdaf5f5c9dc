"""Apple GPUs: "metal" in programs for macOS, "metal:macabi" in apps that Mac Catalyst brings there.

What TVM makes is source in Metal's language, which the device's driver compiles. Other than the
kernels' common ground (see kernels/gpu/emit.py), all of Apple's GPUs since A11 and M1 have groups
of 1024 threads, 32 threads of them in step, and 32 KiB for a group.
"""

from __future__ import annotations

from typing import Any

from wherry.errors import UsageError

from . import hosts
from .kernels.by_name import KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .target import TargetPreset

THREADS = 256  # of a group: a kernel that needs many registers could not have all 1024
SHARED_MEMORY_BYTES = 32768
BUFFERS = 31  # that a kernel can take; one of them holds the plain values
SIMD_WIDTH = 32
VARIANTS = {None: "macos", "macabi": "macabi"}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a Mac's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant not in VARIANTS:
        raise UsageError(
            f"Unknown target 'metal:{variant}'; after the colon goes macabi, or nothing. "
            "Type: --target metal"
        )
    return apple_gpu("metal" if variant is None else f"metal:{variant}", VARIANTS[variant])


def apple_gpu(name: str, host: str) -> TargetPreset:
    """The preset called `name`, of a GPU in a device whose programs have the host `host`."""
    limits = GpuLimits(
        threads_per_block=THREADS,
        shared_memory_bytes=SHARED_MEMORY_BYTES,
        storage_buffers=BUFFERS - 1,
    )
    device: dict[str, Any] = {
        "kind": "metal",
        "max_threads_per_block": THREADS,
        "max_num_threads": THREADS,
        "max_shared_memory_per_block": SHARED_MEMORY_BYTES,
        "max_function_args": BUFFERS,
        "thread_warp_size": SIMD_WIDTH,
    }
    there = hosts.HOSTS[host]
    return TargetPreset(
        name=name,
        device=device,
        host=there.target,
        library=there.library(),
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(GpuKernels(limits, device)),
        hosts=hosts.APPLE,
    )

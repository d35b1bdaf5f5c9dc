"""Vulkan devices: GPUs of PCs and phones, and through Mesa's lavapipe any CPU.

"vulkan" fits nearly every GPU; "vulkan:128" and "vulkan:64" those that run fewer invocations in a
workgroup.
"""

from __future__ import annotations

from typing import Any

from wherry.errors import UsageError

from .cpu import host
from .kernels.by_name import KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .spirv import SpirvToolchain
from .target import TargetPreset
from .variants import GROUP_SIZES

THREADS = GROUP_SIZES  # what a variant names
SHARED_MEMORY_BYTES = 16384  # what Vulkan promises


def preset(variant: str | None) -> TargetPreset:
    """The preset for workgroups of `variant` invocations.

    Raises:
        UsageError: it is not one of THREADS.
    """
    if variant is not None and variant not in THREADS:
        raise UsageError(
            f"Unknown target 'vulkan:{variant}'; after the colon goes the size of a workgroup: "
            f"{', '.join(THREADS)}. Type: --target vulkan"
        )
    threads = int(variant or THREADS[-1])
    device: dict[str, Any] = {
        "kind": "vulkan",
        "max_threads_per_block": threads,
        "max_num_threads": threads,
        "max_shared_memory_per_block": SHARED_MEMORY_BYTES,
    }
    limits = GpuLimits(threads_per_block=threads, shared_memory_bytes=SHARED_MEMORY_BYTES)
    return TargetPreset(
        name="vulkan" if variant is None else f"vulkan:{variant}",
        device=device,
        host=host(),
        library="so",
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(GpuKernels(limits, device)),
        toolchain=SpirvToolchain(),
    )

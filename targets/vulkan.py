"""Vulkan devices: GPUs of PCs and phones, and through Mesa's lavapipe any CPU.

"vulkan" fits nearly every GPU; "vulkan:128" and "vulkan:64" those that run fewer invocations in a
workgroup.
"""

from __future__ import annotations

from .gpu import gpu_preset, group_size
from .kernels.gpu import GpuLimits
from .spirv import SpirvToolchain
from .storage_half import with_single_halves
from .target import TargetPreset

SHARED_MEMORY_BYTES = 16384  # what Vulkan promises


def preset(variant: str | None) -> TargetPreset:
    """The preset for workgroups of `variant` invocations.

    Raises:
        UsageError: it is not one of GROUP_SIZES.
    """
    threads = group_size("vulkan", variant)
    return gpu_preset(
        "vulkan" if variant is None else f"vulkan:{variant}",
        GpuLimits(threads_per_block=threads, shared_memory_bytes=SHARED_MEMORY_BYTES),
        {"kind": "vulkan"},
        edit=with_single_halves,
        toolchain=SpirvToolchain(),
    )

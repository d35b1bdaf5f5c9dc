"""Targets for OpenCL devices: GPUs, phones, and any CPU through PoCL.

"opencl" is for nearly every device of version 1.2; "opencl:128" and "opencl:64" are for devices
with fewer work-items in a work-group. Float16 is loaded by functions that need no half support.
"""

from __future__ import annotations

from . import hosts
from .gpu import gpu_preset, group_size
from .kernels.gpu import GpuLimits
from .storage_half import with_storage_half
from .target import TargetPreset

SHARED_MEMORY_BYTES = 32768  # bytes of local memory: the minimum of OpenCL 1.2


def preset(variant: str | None) -> TargetPreset:
    """Return the preset for work-groups of `variant` work-items.

    Raises:
        UsageError: the variant is not one of GROUP_SIZES.
    """
    threads = group_size("opencl", variant)
    return gpu_preset(
        "opencl" if variant is None else f"opencl:{variant}",
        GpuLimits(threads_per_block=threads, shared_memory_bytes=SHARED_MEMORY_BYTES),
        {"kind": "opencl"},
        hosts=(*hosts.SERVERS, *hosts.APPS),
        edit=with_storage_half,
    )

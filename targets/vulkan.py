"""Targets for Vulkan devices: GPUs of PCs and phones, and any CPU through Mesa's lavapipe.

"vulkan" is for nearly every GPU; "vulkan:128" and "vulkan:64" are for GPUs with fewer invocations
in a workgroup; "vulkan:matrices" for GPUs that multiply matrices (VK_KHR_cooperative_matrix).
"""

from __future__ import annotations

from dataclasses import replace

from . import hosts
from .gpu import gpu_preset, group_size
from .kernels.gpu import GpuLimits
from .spirv.generation import SpirvToolchain
from .storage_half import with_single_halves
from .target import TargetPreset
from .variants import MATRICES

SHARED_MEMORY_BYTES = 16384  # bytes of shared memory: the minimum of Vulkan
BINDING_BYTES = 128 << 20  # bytes of a binding: the minimum of maxStorageBufferRange
MATRICES_SHARED_MEMORY_BYTES = 32768  # bytes of shared memory: the minimum of devices with matrices


def preset(variant: str | None) -> TargetPreset:
    """Return the preset for workgroups of `variant` invocations, or for devices with matrices.

    Raises:
        UsageError: the variant is neither one of GROUP_SIZES nor MATRICES.
    """
    matrices = variant == MATRICES
    limits = GpuLimits(
        threads_per_block=group_size("vulkan", None if matrices else variant),
        shared_memory_bytes=SHARED_MEMORY_BYTES,
    )
    if matrices:
        limits = replace(
            limits, shared_memory_bytes=MATRICES_SHARED_MEMORY_BYTES, cooperative_matrices=True
        )
    return gpu_preset(
        "vulkan" if variant is None else f"vulkan:{variant}",
        limits,
        {"kind": "vulkan"},
        hosts=(*hosts.SERVERS, *hosts.APPS),
        edit=with_single_halves,
        toolchain=SpirvToolchain(),
        # With matrices a row's bits depend on its batch: GEMMs multiply in float16, GEMVs in
        # float32.
        fast_math=matrices,
        binding_bytes=BINDING_BYTES,
    )

"""OpenCL devices: GPUs, phones, and through PoCL any CPU.

"opencl" fits nearly every device of version 1.2; "opencl:128" and "opencl:64" those that run fewer
work-items in a group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm.tirx import PrimFunc

from wherry.errors import UsageError

from .cpu import host
from .kernels.by_name import Answer, KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .kernels.kernel_set import FusedKernel
from .storage_half import with_storage_half
from .target import TargetPreset
from .variants import GROUP_SIZES

THREADS = GROUP_SIZES  # what a variant names
SHARED_MEMORY_BYTES = 32768  # what OpenCL 1.2 promises


def preset(variant: str | None) -> TargetPreset:
    """The preset for groups of `variant` work-items.

    Raises:
        UsageError: it is not one of THREADS.
    """
    if variant is not None and variant not in THREADS:
        raise UsageError(
            f"Unknown target 'opencl:{variant}'; after the colon goes the size of a work-group: "
            f"{', '.join(THREADS)}. Type: --target opencl"
        )
    threads = int(variant or THREADS[-1])
    limits = GpuLimits(threads_per_block=threads, shared_memory_bytes=SHARED_MEMORY_BYTES)
    device: dict[str, Any] = {
        "kind": "opencl",
        "max_threads_per_block": threads,
        "max_num_threads": threads,
        "max_shared_memory_per_block": SHARED_MEMORY_BYTES,
    }
    return TargetPreset(
        name="opencl" if variant is None else f"opencl:{variant}",
        device=device,
        host=host(),
        library="so",
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=OpenClKernels(GpuKernels(limits, device)),
    )


class OpenClKernels(KernelsByName):
    """Kernels of any GPU, with halves loaded in the way that devices without half support have."""

    def kernel(self, op: str, spec: str) -> Answer:
        """See KernelsByName."""
        found = super().kernel(op, spec)
        if isinstance(found, FusedKernel):
            return replace(found, compute=with_storage_half(found.compute))
        return with_storage_half(found) if isinstance(found, PrimFunc) else found

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """See KernelsByName."""
        return with_storage_half(super().schedule(func))

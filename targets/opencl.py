"""OpenCL devices: GPUs, phones, and through PoCL any CPU. "opencl" fits every device of 1.2."""

from __future__ import annotations

from typing import Any

from tvm.tirx import PrimFunc

from wherry.errors import UsageError

from .cpu import host
from .kernels.by_name import KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .kernels.kernel_set import PackedLinear
from .storage_half import with_storage_half
from .target import TargetPreset

# What nearly every device has. OpenCL itself promises less (one thread, 32 KiB).
LIMITS = GpuLimits(threads_per_block=256, shared_memory_bytes=32768)


def preset(variant: str | None) -> TargetPreset:
    """The one preset there is.

    Raises:
        UsageError: a variant was asked for.
    """
    if variant is not None:
        raise UsageError(f"Unknown target 'opencl:{variant}'. Type: --target opencl")
    device: dict[str, Any] = {
        "kind": "opencl",
        "max_threads_per_block": LIMITS.threads_per_block,
        "max_num_threads": LIMITS.threads_per_block,
        "max_shared_memory_per_block": LIMITS.shared_memory_bytes,  # bytes
    }
    return TargetPreset(
        name="opencl",
        device=device,
        host=host(),
        library="so",
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=OpenClKernels(GpuKernels(LIMITS, device)),
    )


class OpenClKernels(KernelsByName):
    """Kernels of any GPU, with halves loaded in the way that devices without half support have."""

    def kernel(self, op: str, spec: str) -> PrimFunc | PackedLinear | None:
        """See KernelsByName."""
        found = super().kernel(op, spec)
        return with_storage_half(found) if isinstance(found, PrimFunc) else found

    def schedule(self, func: PrimFunc) -> PrimFunc:
        """See KernelsByName."""
        return with_storage_half(super().schedule(func))

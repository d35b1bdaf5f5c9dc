"""Browsers with WebGPU: kernels in WGSL, within the limits that every implementation grants."""

from __future__ import annotations

from typing import Any

from wherry.errors import UsageError

from . import hosts
from .kernels.by_name import KernelsByName
from .kernels.gpu import GpuKernels, GpuLimits
from .target import TargetPreset

# Defaults of the specification, section "Limits": what a page has without asking for more.
LIMITS = GpuLimits(
    threads_per_block=256,  # maxComputeInvocationsPerWorkgroup
    shared_memory_bytes=16384,  # maxComputeWorkgroupStorageSize
    storage_buffers=8,  # maxStorageBuffersPerShaderStage
    few_launches=True,
)


def preset(variant: str | None) -> TargetPreset:
    """The preset of any browser.

    Raises:
        UsageError: there are no variants.
    """
    if variant is not None:
        raise UsageError(f"Unknown target 'webgpu:{variant}'. Type: --target webgpu")
    device: dict[str, Any] = {
        "kind": "webgpu",
        "max_num_threads": LIMITS.threads_per_block,
        "max_shared_memory_per_block": LIMITS.shared_memory_bytes,
    }
    page = hosts.HOSTS["wasm32"]
    return TargetPreset(
        name="webgpu",
        device=device,
        host=page.target,
        library=page.library(),
        features=(),
        dtype="float32",
        kv_dtype="float32",
        kernels=KernelsByName(GpuKernels(LIMITS, device)),
        hosts=(page.name,),
    )

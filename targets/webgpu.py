"""Targets for browsers with WebGPU: WGSL kernels within the limits of every implementation.

WGSL allows a browser to reassociate and to fuse operations (section "Floating point evaluation"),
and a kernel cannot forbid it: a row's last bits may depend on its batch.
"""

from __future__ import annotations

from wherry.errors import UsageError

from . import hosts
from .gpu import gpu_preset
from .kernels.gpu import GpuLimits
from .target import TargetPreset
from .toolchains.web import CORES, WEB_LLM, WebToolchain
from .webgpu_buffers import BINDING_BYTES

# Defaults of the WebGPU specification, section "Limits": a page has them without a request.
LIMITS = GpuLimits(
    threads_per_block=256,  # maxComputeInvocationsPerWorkgroup
    shared_memory_bytes=16384,  # bytes, maxComputeWorkgroupStorageSize
    storage_buffers=8,  # maxStorageBuffersPerShaderStage
    few_launches=True,
)


def preset(variant: str | None) -> TargetPreset:
    """Return the preset for any browser.

    Args:
        variant: "web-llm": a library for @mlc-ai/web-llm; None: one for Wherry's engine.

    Raises:
        UsageError: the variant is unknown.
    """
    if variant not in (None, WEB_LLM):
        raise UsageError(
            f"Unknown target 'webgpu:{variant}'; after the colon stands nothing, or {WEB_LLM} for "
            "a library that runs in @mlc-ai/web-llm. Type: --target webgpu"
        )
    page = hosts.HOSTS["wasm32"]
    return gpu_preset(
        f"webgpu:{variant}" if variant else "webgpu",
        LIMITS,
        {"kind": "webgpu"},
        there=page,
        hosts=(page.name,),
        fast_math=True,
        toolchain=WebToolchain(CORES[variant or ""]),
        interface=variant,
        # WebLLM finds whole weights by their names, so they cannot be split.
        binding_bytes=None if variant else BINDING_BYTES,
    )

"""Apple GPUs: "metal" in programs for macOS, "metal:macabi" in apps that Mac Catalyst brings there.

Macs are those from M1 on: their SIMD groups multiply matrices, as those of phones from A14 on.

What TVM makes is source in Metal's language, which the device's driver compiles, through TVM's run
time with fast math: sums may be added in another order than they are written in, and so a row's
last bits may depend on its company there. All of Apple's GPUs since A11 and M1 have groups of 1024
threads, 32 threads of them in step, and 32 KiB for a group.
"""

from __future__ import annotations

from . import hosts
from .gpu import gpu_preset
from .kernels.gpu import GpuLimits
from .target import TargetPreset
from .variants import chosen

THREADS = 256  # of a group: a kernel that needs many registers could not have all 1024
SHARED_MEMORY_BYTES = 32768
BUFFERS = 31  # that a kernel can take; one of them holds the plain values
SIMD_WIDTH = 32
VARIANTS = {"macabi": "apps of Mac Catalyst"}  # named after their hosts


def preset(variant: str | None) -> TargetPreset:
    """The preset of a Mac's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        return apple_gpu("metal", "macos", simdgroups=True)
    (host,) = chosen("metal", variant, VARIANTS)
    return apple_gpu(f"metal:{variant}", host, simdgroups=True)


def apple_gpu(name: str, host: str, *, simdgroups: bool) -> TargetPreset:
    """The preset called `name`, of a GPU in a device whose programs have the host `host`.

    Args:
        name: of the target, as typed.
        host: where its programs run.
        simdgroups: whether all such GPUs are of Apple's family 7, or later.
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

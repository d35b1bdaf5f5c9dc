"""Android phones: "android" for Adreno GPUs and "android:mali" for Mali, through OpenCL.

"android:vulkan" is for GPUs of either kind through Vulkan, which every phone's driver has.
"""

from __future__ import annotations

from dataclasses import replace

from . import hosts, opencl, vulkan
from .target import TargetPreset
from .variants import chosen

# Work-items of a work-group: what every GPU of the family allows for kernels with as many registers
# as Wherry's. Mali emulates local memory in main memory, so smaller groups wait less for it.
ADRENO, MALI = "256", "128"
VARIANTS = {"mali": "GPUs of Arm", "vulkan": "any GPU, through Vulkan"}


def preset(variant: str | None) -> TargetPreset:
    """Return the target preset of a phone's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        name, gpu = "android", opencl.preset(ADRENO)
    else:
        (variant,) = chosen("android", variant, VARIANTS)
        name = f"android:{variant}"
        gpu = opencl.preset(MALI) if variant == "mali" else vulkan.preset(MALI)
    gpu = replace(gpu, name=name, hosts=("android",))
    return gpu.on(hosts.HOSTS["android"])

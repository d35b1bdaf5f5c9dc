"""Android phones, through OpenCL: "android" for Adreno GPUs, "android:mali" for Mali."""

from __future__ import annotations

from dataclasses import replace

from . import hosts, opencl
from .target import TargetPreset
from .variants import chosen

# Work-items of a group, what every GPU of a family has for kernels with as many registers as ours.
# Mali's local memory is its main memory: smaller groups wait less for it.
ADRENO, MALI = "256", "128"
VARIANTS = {"mali": "GPUs of Arm"}


def preset(variant: str | None) -> TargetPreset:
    """The preset of a phone's GPU.

    Raises:
        UsageError: there is no such variant.
    """
    if variant is None:
        name, threads = "android", ADRENO
    else:
        name, threads = f"android:{chosen('android', variant, VARIANTS)[0]}", MALI
    gpu = replace(opencl.preset(threads), name=name, hosts=("android",))
    return gpu.on(hosts.HOSTS["android"])
